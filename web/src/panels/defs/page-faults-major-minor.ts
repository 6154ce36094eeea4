// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const pageFaultsMajorMinor: ChartDef = {
  id: "page-faults-major-minor",
  kind: "lines",
  title: "Major and minor faults",
  question: "Does a fault have to wait for a disk?",
  unit: "per_second",
  queries: [
    {
      expr: "sum by (type) ($rate(teescope_page_faults_handled_total{$workloads}[$window]))",
      legend: "{{type}}",
    },
  ],
  help: "Minor faults are served from memory; major ones wait for storage.",
  empty: { text: "No page fault was handled in this time range.", probe: "fault" },
};
