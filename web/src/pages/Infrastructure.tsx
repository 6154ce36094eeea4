// SPDX-License-Identifier: Apache-2.0

// The machine as a whole, from the families named node_. They know no workload:
// of the filters only that of nodes applies, and each panel says so.
import { INFRASTRUCTURE } from "../panels/dashboards/infrastructure";
import { Sections } from "./Sections";

export function Infrastructure() {
  return (
    <>
      <p class="page-note">The machine as a whole. Only the node filter applies to this page.</p>
      <Sections sections={INFRASTRUCTURE} />
    </>
  );
}
