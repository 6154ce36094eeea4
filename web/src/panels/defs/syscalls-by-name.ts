// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const syscallsByName: ChartDef = {
  id: "syscalls-by-name",
  kind: "stacked",
  title: "System calls by name",
  question: "Which system calls does the workload make, and how often?",
  unit: "per_second",
  queries: [
    {
      expr: "sum by (syscall) ($rate(teescope_syscalls_total{$workloads}[$window]))",
      legend: "{{syscall}}",
    },
  ],
  top: 10,
  help:
    "Calls counted at entry: each one, or, while that would cost more than the budget, a sample that is scaled up (the status page says which). Inside an enclave each one costs a transition, so a tall band here is the first place to look. The heaviest ten over the time range are named; the rest are added together.",
  empty: { text: "No system call was counted in this time range.", probe: "sys" },
};
