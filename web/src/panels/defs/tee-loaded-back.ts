// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const teeLoadedBack: ChartDef = {
  id: "tee-loaded-back",
  kind: "stacked",
  title: "Loaded back by workload",
  question: "Who waits for evicted pages?",
  unit: "per_second",
  queries: [
    {
      expr: "sum by (workload, instance) ($rate(sgx_workload_pages_loaded_back_total{$workloads}[$window]))",
      legend: "{{workload}}",
    },
  ],
  top: 10,
  help:
    "Evicted pages of a workload's enclaves that had to be loaded back because somebody touched them.",
  empty: { text: "No page was loaded back in this time range: the enclaves that run fit.", probe: "sgx_" },
};
