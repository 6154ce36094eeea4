// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const teeEpcUse: ChartDef = {
  id: "tee-epc-use",
  kind: "stacked",
  title: "Enclave page cache in use",
  question: "Who holds the enclave memory that there is?",
  unit: "bytes",
  queries: [
    {
      expr: "sum by (workload, instance) (sgx_workload_resident_bytes{$workloads})",
      legend: "{{workload}}",
    },
    {
      expr: "sum(sgx_epc_free_bytes{$nodes})",
      legend: "free",
    },
  ],
  top: 12,
  help:
    "Pages of the enclave page cache (EPC) that each workload's enclaves occupy, and those that are free. The rest of the EPC's size are version arrays, which hold the versions of evicted pages.",
  empty: { text: "No workload holds enclave memory. It needs an SGX machine whose in-tree driver teescope can watch; the status page says why it cannot.", probe: "sgx_" },
};
