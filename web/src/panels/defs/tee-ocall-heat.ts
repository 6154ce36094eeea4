// SPDX-License-Identifier: Apache-2.0
import type { HeatmapDef } from "../types";

export const teeOcallHeat: HeatmapDef = {
  id: "tee-ocall-heat",
  kind: "heatmap",
  title: "How long calls out of enclaves take",
  question: "Do all OCALLs take as long, or are there slow ones?",
  unit: "seconds",
  queries: [{ expr: "sum by (le) ($rate(teescope_ocall_seconds_bucket{$workloads}[$window]))", legend: "{{le}}" }],
  help: "Calls in a second, by how long they took. Outside alone, without leaving and entering the enclave. The probes add a microsecond or two.",
  empty: { text: "No call was timed in this time range: only those of processes that --watch names are." },
};
