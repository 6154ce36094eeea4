// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const teeWorkingSet: ChartDef = {
  id: "tee-working-set",
  kind: "lines",
  title: "Working set against what is resident",
  question: "How much enclave memory would end the paging?",
  unit: "bytes",
  queries: [
    {
      expr: "sum by (workload, instance) (sgx_workload_working_set_bytes{$workloads})",
      legend: "{{workload}}: working set",
    },
    {
      expr: "sum by (workload, instance) (sgx_workload_resident_bytes{$workloads})",
      legend: "{{workload}}: resident",
    },
    {
      expr: "sum(sgx_epc_size_bytes{$nodes})",
      legend: "size of the EPC",
    },
  ],
  top: 12,
  help:
    "The working set is an estimate from above: what is resident and what was loaded back in the last minute. Where the sum of the working sets is below the size of the EPC, nothing has to be paged.",
  empty: { text: "No enclave was seen in this time range.", probe: "sgx_" },
};
