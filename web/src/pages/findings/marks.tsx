// SPDX-License-Identifier: Apache-2.0

// The severity and the subject of a finding, which the overview shows too.
import type { Finding } from "../../api/findings";
import { useSession } from "../../lib/session";
import { oneWorkload } from "../../lib/url";
import { ViewLink } from "../../lib/ViewLink";
import { useShown } from "../../panels/use-data";
import { subject } from "./report";

/** The class of the severity mark, as on the overview. */
const TONE: Readonly<Record<Finding["severity"], string>> = { high: "bad", medium: "warn", low: "note", info: "note" };

export function SeverityMark({ severity }: { severity: Finding["severity"] }) {
  return <span class={`mark ${TONE[severity]}`}>{severity}</span>;
}

/** The subject of a finding. A workload is a link to its page. */
export function Subject({ finding }: { finding: Finding }) {
  const { view } = useSession();
  const { several } = useShown();
  const words = subject(finding, several);
  if (finding.workload === "") return <>{words}</>;
  return (
    <ViewLink to={oneWorkload(view.get(), finding.workload, several ? finding.instance : "")} title="Everything about this workload on one page">
      {words}
    </ViewLink>
  );
}
