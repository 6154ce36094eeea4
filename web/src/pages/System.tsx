// SPDX-License-Identifier: Apache-2.0

// What workloads ask of the kernel, in sections.
import { SYSTEM } from "../panels/dashboards/system";
import { Sections } from "./Sections";

export function System() {
  return <Sections sections={SYSTEM} />;
}
