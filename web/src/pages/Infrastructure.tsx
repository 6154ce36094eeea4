// SPDX-License-Identifier: Apache-2.0

// The machine as a whole, from the families named node_. They know no workload:
// the filter is not shown here, and a choice made elsewhere is kept.
import { INFRASTRUCTURE } from "../panels/defs";
import { Sections } from "./Sections";

export function Infrastructure() {
  return (
    <>
      <p class="page-note">The machine as a whole, whatever runs on it: the workload filter does not apply here.</p>
      <Sections sections={INFRASTRUCTURE} />
    </>
  );
}
