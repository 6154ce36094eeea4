// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const syscallTime: ChartDef = {
  id: "syscall-time",
  kind: "stacked",
  title: "Time in system calls",
  question: "How long do threads stay in system calls?",
  unit: "seconds_per_second",
  queries: [
    {
      expr: "sum by (syscall) ($rate(teescope_syscall_seconds_total{$workloads}[$window]))",
      legend: "{{syscall}}",
    },
  ],
  top: 10,
  help:
    "Seconds spent between entry and exit, added up over threads, in a second of wall time. Waiting counts: an idle server spends its time in epoll_wait.",
  empty: {
    text:
      "Time in system calls is not measured. It costs a second probe on each call, so it is off by default.",
    flag: "--syscalls.time",
  },
};
