// SPDX-License-Identifier: Apache-2.0
import type { BarsDef } from "../types";

export const teeOcalls: BarsDef = {
  id: "tee-ocalls",
  kind: "bars",
  title: "Calls out of enclaves",
  question: "Which OCALLs are made most?",
  unit: "per_second",
  queries: [
    {
      expr: "sum by (workload, ocall, instance) ($rate(teescope_ocalls_total{$workloads}[$window]))",
      legend: "{{workload}}: {{ocall}}",
    },
  ],
  top: 12,
  help:
    "By the name of the function, or its number where the program has no symbols. A call that asks for the time, a lock or an identity need not leave the enclave at all.",
  empty: { text: "No call out of an enclave was seen in this time range." },
};
