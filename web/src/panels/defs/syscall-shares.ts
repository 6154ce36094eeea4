// SPDX-License-Identifier: Apache-2.0
import type { FlameDef } from "../types";

export const syscallShares: FlameDef = {
  id: "syscall-shares",
  kind: "flame",
  title: "System calls of each workload",
  question: "Which calls of which workload take the time?",
  unit: "seconds_per_second",
  keys: [
    { label: "workload", title: "Workload" },
    { label: "syscall", title: "System call" },
    { label: "instance", title: "Node", several: true },
  ],
  columns: [
    {
      title: "Time",
      unit: "seconds_per_second",
      expr: "sum by (workload, syscall, instance) ($rate(teescope_syscall_seconds_total{$workloads}[$window])) > 0",
    },
    {
      title: "Calls",
      unit: "per_second",
      expr: "sum by (workload, syscall, instance) ($rate(teescope_syscalls_total{$workloads}[$window])) > 0",
    },
  ],
  help:
    "Each part is as wide as its share: of the time in system calls, waiting included, where --syscalls.time measures it, and of the number of calls. A click widens a part. Parts too narrow to be seen are one.",
  empty: { text: "No system call was counted in this time range.", probe: "sys_enter" },
};
