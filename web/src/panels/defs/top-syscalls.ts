// SPDX-License-Identifier: Apache-2.0
import type { BarsDef } from "../types";

export const topSyscalls: BarsDef = {
  id: "top-syscalls",
  kind: "bars",
  title: "Commonest system calls",
  question: "What is asked of the kernel right now?",
  unit: "per_second",
  queries: [{ expr: "sum by (syscall) ($rate(teescope_syscalls_total{$workloads}[$window]))", legend: "{{syscall}}" }],
  top: 8,
  help: "Mean of the newest minute of the time range. Each bar is a share of all system calls shown.",
  empty: { text: "No system call was counted in the newest minute.", probe: "sys" },
};
