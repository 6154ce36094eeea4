// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const syscallsByWorkload: ChartDef = {
  id: "syscalls-by-workload",
  kind: "lines",
  title: "System calls by workload",
  question: "Who makes them?",
  unit: "per_second",
  queries: [
    {
      expr: "sum by (workload, instance) ($rate(teescope_syscalls_total{$workloads}[$window]))",
      legend: "{{workload}}",
    },
  ],
  top: 10,
  help: "All system calls of each workload together.",
  empty: { text: "No system call was counted in this time range.", probe: "sys" },
};
