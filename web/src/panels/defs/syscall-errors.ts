// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const syscallErrors: ChartDef = {
  id: "syscall-errors",
  kind: "lines",
  title: "Failed system calls",
  question: "Which calls fail, and with what error?",
  unit: "per_second",
  queries: [
    {
      expr:
        "sum by (comm, syscall, errno) ($rate(teescope_process_syscall_errors_total{$workloads}[$window]))",
      legend: "{{syscall}} {{errno}} {{comm}}",
    },
  ],
  top: 10,
  help:
    "Counted for watched processes only. EAGAIN on a non-blocking socket is how servers learn that there is nothing to read.",
  empty: {
    text: "Errors are counted for watched processes, and none is watched or none failed.",
    flag: "--watch comm=redis-server",
  },
};
