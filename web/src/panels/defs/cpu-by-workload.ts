// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const cpuByWorkload: ChartDef = {
  id: "cpu-by-workload",
  kind: "stacked",
  title: "CPU by workload",
  question: "Who uses the processors?",
  unit: "cores",
  queries: [
    {
      expr: "sum by (workload, instance) ($rate(teescope_cpu_seconds_total{$workloads}[$window]))",
      legend: "{{workload}}",
    },
  ],
  top: 10,
  help: "User and system time together, in processors kept busy.",
  empty: { text: "No CPU time was accounted in this time range." },
};
