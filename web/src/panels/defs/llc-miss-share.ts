// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const llcMissShare: ChartDef = {
  id: "llc-miss-share",
  kind: "lines",
  title: "Last-level cache misses by workload",
  question: "Whose references miss?",
  unit: "ratio",
  queries: [
    {
      expr:
        "sum by (workload, instance) ($rate(teescope_llc_misses_total{$workloads}[$window])) / sum by (workload, instance) ($rate(teescope_llc_references_total{$workloads}[$window]))",
      legend: "{{workload}}",
    },
  ],
  help: "Misses divided by references.",
  empty: {
    text:
      "No last-level cache counters. They need a hardware performance unit (PMU), which virtual machines often do not have.",
    probe: "llc|cache_ref|cache_miss|pmu",
  },
};
