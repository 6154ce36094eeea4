// SPDX-License-Identifier: Apache-2.0

// What workloads do in the kernel, in sections.
import { SYSTEM } from "../panels/dashboards/system";
import { Sections } from "./Sections";

export function System() {
  return <Sections sections={SYSTEM} />;
}
