// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const pageFaultsByMode: ChartDef = {
  id: "page-faults-by-mode",
  kind: "stacked",
  title: "Page faults by mode",
  question: "Does the program fault, or the kernel on its behalf?",
  unit: "per_second",
  queries: [
    {
      expr: "sum by (mode) ($rate(teescope_page_faults_total{$workloads}[$window]))",
      legend: "{{mode}}",
    },
  ],
  help:
    "user: the program touched the page. kernel: the kernel did, for instance while it copied to a buffer of the program.",
  empty: { text: "No page fault was counted in this time range.", probe: "fault" },
};
