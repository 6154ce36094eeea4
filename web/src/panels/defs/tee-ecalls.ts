// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const teeEcalls: ChartDef = {
  id: "tee-ecalls",
  kind: "lines",
  title: "Calls into enclaves",
  question: "Which ECALLs are made?",
  unit: "per_second",
  queries: [
    {
      expr: "sum by (workload, ecall, instance) ($rate(teescope_ecalls_total{$workloads}[$window]))",
      legend: "{{workload}}: {{ecall}}",
    },
  ],
  top: 10,
  help:
    "By the number of the function, or by its name where the runtime tells it.",
  empty: { text: "No call into an enclave was seen in this time range." },
};
