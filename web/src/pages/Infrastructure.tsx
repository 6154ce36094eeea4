// SPDX-License-Identifier: Apache-2.0

// The machine as a whole, from the families node_*. They have no workloads. Only the filter of nodes applies, and
// each panel says so.
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
