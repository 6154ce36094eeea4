// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const teeOcallTime: ChartDef = {
  id: "tee-ocall-time",
  kind: "lines",
  title: "Time that calls out of enclaves take",
  question: "How long is a thread outside for an OCALL?",
  unit: "seconds",
  queries: [
    {
      expr: "sum by (workload, ocall, instance) ($rate(teescope_ocall_seconds_sum{$workloads}[$window])) / sum by (workload, ocall, instance) ($rate(teescope_ocall_seconds_count{$workloads}[$window]))",
      legend: "{{workload}}: {{ocall}}, on average",
    },
    {
      expr: "histogram_quantile(0.99, sum by (workload, ocall, instance, le) ($rate(teescope_ocall_seconds_bucket{$workloads}[$window])))",
      legend: "{{workload}}: {{ocall}}, 99 in 100 are below",
    },
  ],
  top: 10,
  help:
    "Outside alone, without leaving and entering the enclave, which costs 8,000 to 20,000 cycles more. The probes add a microsecond or two.",
  empty: { text: "No call was timed in this time range: only those of processes that --watch names are." },
};
