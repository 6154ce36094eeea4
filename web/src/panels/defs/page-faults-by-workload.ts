// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const pageFaultsByWorkload: ChartDef = {
  id: "page-faults-by-workload",
  kind: "lines",
  title: "Page faults by workload",
  question: "Who faults?",
  unit: "per_second",
  queries: [
    {
      expr: "sum by (workload, instance) ($rate(teescope_page_faults_total{$workloads}[$window]))",
      legend: "{{workload}}",
    },
  ],
  top: 10,
  help: "All page faults of each workload together, whatever the reason.",
  empty: { text: "No page fault was counted in this time range.", probe: "fault" },
};
