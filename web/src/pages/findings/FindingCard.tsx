// SPDX-License-Identifier: Apache-2.0

// One finding: cause, gain, evidence with its queries, advice, and assumptions.
import type { ComponentChild } from "preact";
import { useRef, useState } from "preact/hooks";
import type { Evidence, Finding } from "../../api/findings";
import { useSession } from "../../lib/session";
import { formatMoment, formatSpan, zoneName } from "../../lib/time";
import { oneWorkload, type ViewState } from "../../lib/url";
import { ViewLink } from "../../lib/ViewLink";
import { useShown } from "../../panels/use-data";
import { chartOf } from "./charts";
import { SeverityMark, Subject } from "./marks";
import { Mute } from "./Mute";
import { profileView } from "./profile-link";
import { assumptions, figure, formatFigure, limitText, preceding, say, subject, threads, together, worthText } from "./report";

export function FindingCard({ finding }: { finding: Finding }) {
  const head = `finding-${finding.id}`;
  const gain = worthText(finding);
  const limit = limitText(finding);
  const { recorded } = useSession();
  return (
    <article class="panel cause" aria-labelledby={head} data-finding={finding.rule} data-workload={finding.workload}>
      <header>
        <SeverityMark severity={finding.severity} />
        <h3 id={head}>
          <Subject finding={finding} />: {finding.title}
        </h3>
        {gain !== "" && <p class="gain">{gain}</p>}
      </header>
      <p>{finding.cause}</p>
      {limit !== "" && <p class="limit">{limit}</p>}
      <p class="aside">{seen(finding)}</p>
      <Lines title={say("threads")} lines={threads(finding)} />
      <Lines title={say("before")} lines={preceding(finding)} />
      <Lines title={say("advice")} lines={finding.advice} />
      <Lines title={say("code")} lines={ways(finding, recorded === true)} />
      <Lines title={say("settings")} lines={finding.settings} />
      <ManifestLines finding={finding} />
      <Lines title={say("others")} lines={together(finding)} />
      <h4>{say("evidence")}</h4>
      <EvidenceTable finding={finding} />
      {/^docs\/runbooks\/[\w-]+\.md$/.test(finding.runbook) && <Runbook path={finding.runbook} />}
      <Footing finding={finding} />
      <Mute finding={finding} />
    </article>
  );
}

/** A list with a title, or nothing. */
function Lines({ title, lines }: { title: string; lines: readonly ComponentChild[] }) {
  if (lines.length === 0) return null;
  return (
    <>
      <h4>{title}</h4>
      <ul class="dashes">
        {lines.map((line, i) => (
          <li key={i}>{line}</li>
        ))}
      </ul>
    </>
  );
}

/** The lines of the manifest, which the server reads when they are requested. A report has no server. */
function ManifestLines({ finding: { rule, workload, instance, settings } }: { finding: Finding }) {
  const { client, recorded } = useSession();
  const [lines, setLines] = useState<string[]>();
  if (recorded || !settings[0]) return null;
  return lines ? (
    <div class="query">
      {lines.map((line) => (
        <code>
          <span class={{ "+": "yes", "-": "no" }[line.charAt(0)]}>{line}</span>
        </code>
      ))}
    </div>
  ) : (
    <button class="plain-button" onClick={() => void client.manifest({ rule, workload, instance }).then(setLines)}>
      Show the lines
    </button>
  );
}

/** The functions, the flame graphs that show the code, and the command that records one. A report has no server. */
function ways({ code }: Finding, recorded: boolean): ComponentChild[] {
  if (!code) return [];
  const unrecorded = (["profile", "change"] as const).filter((kind) => code[kind] !== "" && !recorded);
  return [
    ...code.lines,
    ...unrecorded.map((kind) => (
      <ViewLink key={kind} to={profileView(code[kind])}>
        {say(`code_${kind}`)}
      </ViewLink>
    )),
    <code key="command">{code.command}</code>,
  ];
}

/** A link to the runbook. The server has the runbooks; a report has no server. */
function Runbook({ path }: { path: string }) {
  const words = "Runbook: what to do";
  return (
    <p>
      {useSession().recorded === true ? (
        <>
          {words}: <code>{path}</code>
        </>
      ) : (
        <a href={`/${path}`}>{words}</a>
      )}
    </p>
  );
}

function seen({ first_seen, last_seen, confidence, rule, instance, unconfirmed }: Finding): string {
  const [first, last] = [Date.parse(first_seen) / 1000, Date.parse(last_seen) / 1000];
  const when =
    last - first < 1 ? `seen at ${formatMoment(last)} ${zoneName(last)}` : `first seen ${formatMoment(first)}, last ${formatMoment(last)} ${zoneName(last)} (${formatSpan(last - first)})`;
  return [confidence, ...(unconfirmed ? [say("unconfirmed")] : []), when, ...(instance === "" ? [] : [instance]), `rule ${rule}`].join(" · ");
}

function EvidenceTable({ finding }: { finding: Finding }) {
  const { several } = useShown();
  return (
    <div class="table-scroll" tabIndex={0} role="group" aria-label={`Evidence for ${finding.title} at ${subject(finding, several)}, table`}>
      <table>
        <thead>
          <tr>
            <th scope="col">Figure</th>
            <th scope="col" class="numeric">Value</th>
            <th scope="col" class="numeric">Samples</th>
            <th scope="col">PromQL</th>
            <th scope="col">Chart</th>
          </tr>
        </thead>
        <tbody>
          {finding.evidence.map((e) => (
            <tr key={e.name}>
              <th scope="row">{e.name}</th>
              <td class="numeric">{figure(e)}</td>
              <td class="numeric">{e.n > 0 ? `n=${e.n}` : "–"}</td>
              <td class="query">
                <Query text={e.query} name={e.name} />
              </td>
              <td>
                <ChartLink evidence={e} finding={finding} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A query and a button that copies it. Where the browser forbids access to the clipboard, it selects the text. */
function Query({ text, name }: { text: string; name: string }) {
  const code = useRef<HTMLElement>(null);
  const [done, setDone] = useState("");
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setDone("Copied");
    } catch {
      if (code.current) window.getSelection()?.selectAllChildren(code.current);
      setDone("Selected: press Ctrl+C");
    }
  };
  return (
    <>
      <button type="button" class="plain-button" aria-label={`Copy the query of ${name}`} onClick={() => void copy()}>
        Copy
      </button>
      <span role="status" class="aside">
        {done}
      </span>
      <code ref={code}>{text}</code>
    </>
  );
}

/** Returns the filters for the subject of a finding. A whole machine selects everything on it. */
function aboutIt(view: ViewState, workload: string, node: string): Partial<ViewState> {
  const { workloads, filters } = oneWorkload(view, workload, node);
  return { workloads: workload === "" ? [] : workloads, filters };
}

/** A link to the chart of the same family, filtered by the workload. */
function ChartLink({ evidence, finding: { workload, instance } }: { evidence: Evidence; finding: Finding }) {
  const { recorded, view } = useSession();
  const { several } = useShown();
  const chart = chartOf(evidence.query);
  if (!chart) return <span class="aside">none</span>;
  if (recorded === true) return <a href={`#panel-${chart.panel}`}>{chart.title}</a>;
  return (
    <ViewLink
      to={{ ...aboutIt(view.get(), workload, several ? instance : ""), page: chart.page }}
      after={() => requestAnimationFrame(() => requestAnimationFrame(() => document.getElementById(`panel-${chart.panel}`)?.scrollIntoView({ block: "center" })))}
    >
      {chart.title}
    </ViewLink>
  );
}

function Footing({ finding }: { finding: Finding }) {
  const parts: [string, readonly string[]][] = [
    [say("assumes"), assumptions(finding)],
    [say("explains"), finding.explains.length === 0 ? [] : [finding.explains.join(", ")]],
    [say("not_when"), finding.not_when],
    [say("thresholds"), finding.thresholds.map((t) => `${t.name}: ${say("instead", { value: formatFigure(t.value, t.unit), usual: formatFigure(t.default, t.unit) })}`)],
    [say("sources"), finding.sources],
  ];
  return (
    <details>
      <summary>Assumptions, limits and sources</summary>
      {parts.map(([title, lines]) => (
        <Lines key={title} title={title} lines={lines} />
      ))}
    </details>
  );
}
