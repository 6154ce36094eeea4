// SPDX-License-Identifier: Apache-2.0

// The strip at the top of the overview and of a workload: the verdict, what limits the workload if only one is shown, the
// findings with the greatest gain, and whether something could not be judged.
import type { Finding } from "../../api/findings";
import { ViewLink } from "../../lib/ViewLink";
import { useShown } from "../../panels/use-data";
import { SeverityMark, Subject } from "./marks";
import { chosen, limitedBy, notJudged, plural, subject, verdictText, worthText } from "./report";
import { useFindings } from "./use-findings";

const MOST = 3;

export function TopFindings() {
  const shownNow = useShown();
  const { value: report, error } = useFindings();
  const shown = report ? chosen(report.findings, shownNow) : [];
  const unknown = report ? notJudged(report, shownNow.several).length : 0;
  const more = shown.length - MOST;
  const limits = report ? chosen(report.limits, shownNow) : [];
  return (
    <section class="findings causes" aria-labelledby="causes-head" aria-busy={!report && !error} data-panel="findings">
      <h2 id="causes-head">{report ? verdictText(report, shown, shownNow.several) : (error?.message ?? "Loading the findings…")}</h2>
      {limits.length === 1 && <p class="nothing">{limits.map((limit) => limitedBy(limit, shownNow.several))}</p>}
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
          <ViewLink to={{ page: "findings" }}>All findings</ViewLink>
        </p>
      )}
    </section>
  );
}

function Row({ finding }: { finding: Finding }) {
  const { several } = useShown();
  const gain = worthText(finding);
  return (
    <li class="finding" data-finding={finding.rule} data-workload={finding.workload}>
      <SeverityMark severity={finding.severity} />
      <div>
        <p class="title">
          <Subject finding={finding} />: {finding.title}
          {gain !== "" && <span class="gain"> {gain}</span>}
        </p>
        <p class="detail">{finding.cause}</p>
      </div>
      <ViewLink to={{ page: "findings" }} label={`Evidence for ${finding.title} at ${subject(finding, several)}`}>
        Evidence
      </ViewLink>
    </li>
  );
}
