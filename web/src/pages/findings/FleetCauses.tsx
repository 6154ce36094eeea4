// SPDX-License-Identifier: Apache-2.0

// Causes that several machines have, each with its findings.
import type { Cause } from "../../api/findings";
import { causeText, memberText, say } from "./report";

export function FleetCauses({ causes }: { causes: readonly Cause[] }) {
  if (causes.length === 0) return null;
  return (
    <section class="panel cause" aria-labelledby="fleet-causes" data-panel="fleet-causes">
      <h3 id="fleet-causes">{say("fleet")}</h3>
      {causes.map((cause) => (
        <details key={cause.rule} data-cause={cause.rule}>
          <summary>{causeText(cause)}</summary>
          <ul class="dashes">
            {cause.members.map((m) => (
              <li key={`${m.instance} ${m.workload}`}>{memberText(m)}</li>
            ))}
            {cause.findings > cause.members.length && <li>{cause.findings - cause.members.length} more</li>}
          </ul>
        </details>
      ))}
    </section>
  );
}
