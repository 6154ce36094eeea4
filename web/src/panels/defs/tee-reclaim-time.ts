// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const teeReclaimTime: ChartDef = {
  id: "tee-reclaim-time",
  kind: "lines",
  title: "Time spent evicting",
  question: "How long do threads wait for a free page?",
  unit: "seconds_per_second",
  queries: [
    {
      expr: "sum by (by) ($rate(sgx_reclaim_seconds_sum{$nodes}[$window]))",
      legend: "by {{by}}",
    },
  ],
  help:
    "direct: threads that needed a page and evicted others' themselves while they waited. ksgxd: the driver's own thread, in the background.",
  empty: { text: "Nothing was evicted in this time range.", probe: "sgx_" },
};
