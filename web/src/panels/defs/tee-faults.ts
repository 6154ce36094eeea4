// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const teeFaults: ChartDef = {
  id: "tee-faults",
  kind: "lines",
  title: "Page faults in enclaves",
  question: "Whose enclaves fault?",
  unit: "per_second",
  queries: [
    {
      expr: "sum by (workload, instance) ($rate(sgx_workload_faults_total{$workloads}[$window]))",
      legend: "{{workload}}",
    },
  ],
  top: 10,
  help:
    "Faults that reached the SGX driver: for pages that are evicted, not mapped yet or not there.",
  empty: { text: "No enclave faulted in this time range.", probe: "sgx_" },
};
