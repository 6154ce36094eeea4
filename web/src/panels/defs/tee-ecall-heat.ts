// SPDX-License-Identifier: Apache-2.0
import type { HeatmapDef } from "../types";

export const teeEcallHeat: HeatmapDef = {
  id: "tee-ecall-heat",
  kind: "heatmap",
  title: "How long calls into enclaves take",
  question: "Do all ECALLs take as long, or are there slow ones?",
  unit: "seconds",
  queries: [{ expr: "sum by (le) ($rate(teescope_ecall_seconds_bucket{$workloads}[$window]))", legend: "{{le}}" }],
  help: "Calls in a second, by how long they took. From the call to its return, with the OCALLs that it makes. The probes add a microsecond or two.",
  empty: { text: "No call was timed in this time range: only those of processes that --watch names are." },
};
