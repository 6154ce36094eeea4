// SPDX-License-Identifier: Apache-2.0

// A whole report on one page: its subject, the verdict, the findings, every panel.
import { useMemo } from "preact/hooks";
import { formatSpan } from "../lib/time";
import { Gaps, VerdictStrip } from "../pages/Overview";
import { Findings } from "../pages/Findings";
import { FACT_EXPRS, readFacts } from "../pages/findings/facts";
import { findGaps } from "../pages/findings/gaps";
import { Sections } from "../pages/Sections";
import { moment } from "../panels/export/csv";
import { useInstant, useShown } from "../panels/use-data";
import type { Dashboard, PanelDef } from "../panels/types";
import { CONTENTS } from "./questions";
import { type Recording, silence } from "./recording";

export function Report({ recording: r }: { recording: Recording }) {
  const { several } = useShown();
  const loaded = useInstant(FACT_EXPRS, true);
  const facts = useMemo(() => (loaded.value ? readFacts(loaded.value, several) : undefined), [loaded.value, several]);
  const gaps = useMemo(() => (facts ? findGaps(facts) : []), [facts]);
  const silent = useMemo(() => silence(r), [r]);
  return (
    <main id="main" class="report">
      <header>
        <h1>teescope: {r.server}</h1>
        <p>
          {moment(r.from)} to {moment(r.to)} ({formatSpan(r.to - r.from)})
          {r.workloads.length > 0 && `, workload ${r.workloads.join(", ")}`}. Written at {moment(r.made)} by teescope {r.version}. All times are UTC.
        </p>
      </header>
      <nav aria-label="Contents">
        <ol>
          <li>
            <a href="#findings">Verdict and findings</a>
          </li>
          {CONTENTS.map((d) => (
            <li key={d.id}>
              <a href={`#part-${d.id}`}>{d.title}</a>
            </li>
          ))}
          <li>
            <a href="#left-out">What is not in this report</a>
          </li>
        </ol>
      </nav>
      <section id="findings" aria-label="Verdict and findings">
        <VerdictStrip facts={facts} problem={loaded.error?.message} />
        <Findings />
        {gaps.length > 0 && <Gaps gaps={gaps} />}
      </section>
      {CONTENTS.map((d) => (
        <Part key={d.id} dashboard={d} silent={silent} />
      ))}
      <LeftOut recording={r} />
    </main>
  );
}

/** The panels of a dashboard. Panels without data show only the reason. */
function Part({ dashboard: { id, title, question, sections }, silent }: { dashboard: Dashboard; silent: (def: PanelDef) => boolean }) {
  const telling = sections.map((s) => ({ ...s, panels: s.panels.filter((def) => !silent(def)) })).filter((s) => s.panels.length > 0);
  const quiet = sections.flatMap((s) => s.panels.filter(silent));
  return (
    <section id={`part-${id}`} class="part" aria-labelledby={`head-${id}`}>
      <h2 id={`head-${id}`}>{title}</h2>
      <p class="page-note">{question}</p>
      <Sections sections={telling} />
      {quiet.length > 0 && (
        <details>
          <summary>
            {telling.length === 0 ? "There is no data" : `${quiet.length} ${quiet.length === 1 ? "panel has" : "panels have"} no data`} in this time range.
          </summary>
          <ul class="dashes">
            {quiet.map((def) => (
              <li key={def.id} data-silent={def.id}>
                {def.title}: {def.empty.text}
              </li>
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}

function LeftOut({ recording: r }: { recording: Recording }) {
  return (
    <section id="left-out" class="part" aria-labelledby="head-left-out">
      <h2 id="head-left-out">What is not in this report</h2>
      <ul class="dashes">
        <li>Chart values have six significant digits. For each query the report has the 300 largest series.</li>
        {r.leftOut.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
    </section>
  );
}
