// SPDX-License-Identifier: Apache-2.0

// Findings, ordered by estimated gain, and what could not be judged.
import { useState } from "preact/hooks";
import type { Report } from "../api/findings";
import { useSession } from "../lib/session";
import { formatMoment, formatSpan, zoneName } from "../lib/time";
import { AnyPanel } from "../panels/AnyPanel";
import { WINDOWS } from "../panels/dashboards/findings";
import { useShown } from "../panels/use-data";
import { FindingCard } from "./findings/FindingCard";
import { FleetCauses } from "./findings/FleetCauses";
import { chosen, notJudged, plural, rolledUp, say, verdictText } from "./findings/report";
import { useFindings } from "./findings/use-findings";

export function Findings() {
  const shownNow = useShown();
  const { recorded } = useSession();
  const [muted, setMuted] = useState(false);
  const { value: report, error, stale } = useFindings(muted);
  if (!report) {
    return (
      <section class="panel" aria-label="Findings" aria-busy={!error}>
        <div class="panel-message">
          <p>{error?.message ?? "Loading the findings…"}</p>
          {error && <p class="advice">{error.advice}</p>}
        </div>
      </section>
    );
  }
  const shown = chosen(report.findings, shownNow);
  return (
    <section aria-labelledby="verdict-head" data-panel="all-findings" data-stale={stale ? "" : undefined}>
      <h2 id="verdict-head">{verdictText(report, shown, shownNow.several)}</h2>
      <p class="page-note">
        {formatSpan(report.window_seconds)} up to {formatMoment(Date.parse(report.at) / 1000)} {zoneName(Date.parse(report.at) / 1000)}, {plural(report.workloads, "workload")},{" "}
        {plural(report.checked.length, "rule")}. Ranked by severity, then by CPU cores.
      </p>
      {report.muted > 0 && !recorded && (
        <button
          type="button"
          class="plain-button"
          aria-pressed={muted}
          onClick={() => {
            setMuted(!muted);
          }}
        >
          Show muted ({report.muted})
        </button>
      )}
      {error && <p class="panel-notice">{error.message} The findings shown are older.</p>}
      <FleetCauses causes={rolledUp(report.causes, report.findings, shownNow)} />
      {shown.map((finding) => (
        <FindingCard key={finding.id} finding={finding} />
      ))}
      <NotJudged report={report} several={shownNow.several} />
      <AnyPanel def={WINDOWS} />
    </section>
  );
}

function NotJudged({ report, several }: { report: Report; several: boolean }) {
  const lines = notJudged(report, several);
  if (lines.length === 0) return null;
  return (
    <section class="panel" aria-labelledby="not-judged" data-panel="not-judged">
      <h3 id="not-judged">{say("not_judged")}</h3>
      <ul class="dashes">
        {lines.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
    </section>
  );
}
