// SPDX-License-Identifier: Apache-2.0

// The strip at the top of the overview: the verdict, the findings that bring
// most, and that something could not be judged.
import type { Finding } from "../../api/findings";
import { useSession } from "../../lib/session";
import { useStore } from "../../lib/store";
import { formatView } from "../../lib/url";
import { useShown } from "../../panels/use-data";
import { SeverityMark } from "./FindingCard";
import { chosen, gainText, notJudged, plural, subject, verdictText } from "./report";
import { useFindings } from "./use-findings";

const MOST = 3;

export function TopFindings() {
  const shownNow = useShown();
  const { value: report, error } = useFindings();
  const shown = report ? chosen(report.findings, shownNow) : [];
  const unknown = report ? notJudged(report).length : 0;
  const more = shown.length - MOST;
  return (
    <section class="findings causes" aria-labelledby="causes-head" aria-busy={!report && !error} data-panel="findings">
      <h2 id="causes-head">{report ? verdictText(report, shown) : (error?.message ?? "Looking for what slows the workloads down…")}</h2>
      {!report && error && <p class="nothing">{error.advice}</p>}
      {shown.length > 0 && (
        <ol>
          {shown.slice(0, MOST).map((finding) => (
            <Row key={finding.id} finding={finding} />
          ))}
        </ol>
      )}
      {report && (more > 0 || unknown > 0) && (
        <p class="nothing">
          {more > 0 && `${more} more. `}
          {unknown > 0 && `Not judged: ${plural(unknown, "reason")}. `}
          <PageLink text="All findings, and what could not be judged" />
        </p>
      )}
    </section>
  );
}

function Row({ finding }: { finding: Finding }) {
  const gain = gainText(finding.gain);
  return (
    <li class="finding" data-finding={finding.rule} data-workload={finding.workload}>
      <SeverityMark severity={finding.severity} />
      <div>
        <p class="title">
          {subject(finding)}: {finding.title}
          {gain !== "" && <span class="gain"> {gain}</span>}
        </p>
        <p class="detail">{finding.cause}</p>
      </div>
      <PageLink text="Evidence" label={`Evidence for ${finding.title} at ${subject(finding)}`} />
    </li>
  );
}

function PageLink({ text, label }: { text: string; label?: string }) {
  const session = useSession();
  const target = { ...useStore(session.view), page: "findings" as const };
  return (
    <a
      href={formatView(target)}
      aria-label={label}
      onClick={(event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        session.view.set(target);
        window.scrollTo(0, 0);
      }}
    >
      {text}
    </a>
  );
}
