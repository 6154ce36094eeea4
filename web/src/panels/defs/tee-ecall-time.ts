// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const teeEcallTime: ChartDef = {
  id: "tee-ecall-time",
  kind: "lines",
  title: "Time that calls into enclaves take",
  question: "How long does an ECALL take?",
  unit: "seconds",
  queries: [
    {
      expr: "sum by (workload, ecall, instance) ($rate(teescope_ecall_seconds_sum{$workloads}[$window])) / sum by (workload, ecall, instance) ($rate(teescope_ecall_seconds_count{$workloads}[$window]))",
      legend: "{{workload}}: {{ecall}}, on average",
    },
    {
      expr: "histogram_quantile(0.99, sum by (workload, ecall, instance, le) ($rate(teescope_ecall_seconds_bucket{$workloads}[$window])))",
      legend: "{{workload}}: {{ecall}}, 99 in 100 are below",
    },
  ],
  top: 10,
  help:
    "From the call to its return, with the OCALLs that it makes. The probes add a microsecond or two.",
  empty: { text: "No call was timed in this time range: only those of processes that --watch names are." },
};
