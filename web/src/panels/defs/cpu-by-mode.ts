// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const cpuByMode: ChartDef = {
  id: "cpu-by-mode",
  kind: "stacked",
  title: "CPU by mode",
  question: "Does the time go to the program or to the kernel?",
  unit: "cores",
  queries: [
    {
      expr: "sum by (mode) ($rate(teescope_cpu_seconds_total{$workloads}[$window]))",
      legend: "{{mode}}",
    },
  ],
  help: "Processors kept busy. A high share of system goes with many system calls, faults or switches.",
  empty: { text: "No CPU time was accounted in this time range." },
};
