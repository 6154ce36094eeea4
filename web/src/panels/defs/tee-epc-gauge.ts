// SPDX-License-Identifier: Apache-2.0
import type { GaugeDef } from "../types";

export const teeEpcGauge: GaugeDef = {
  id: "tee-epc-gauge",
  kind: "gauge",
  title: "Enclave page cache",
  question: "How much of the enclave memory is taken?",
  unit: "bytes",
  queries: [
    { expr: "sum(sgx_epc_size_bytes{$nodes}) - sum(sgx_epc_free_bytes{$nodes})", legend: "taken" },
    { expr: "sum(sgx_epc_size_bytes{$nodes})", legend: "there" },
  ],
  thresholds: [
    { at: 0.8, level: "warn" },
    { at: 0.95, level: "bad" },
  ],
  help:
    "Pages of the enclave page cache (EPC) that are not free, version arrays included, against its size. The driver begins to evict when few are left, so near the end more enclave memory means paging. Of all workloads: their filter does not apply.",
  empty: { text: "The machine has no enclave memory that teescope can watch; the status page says why.", probe: "sgx_" },
};
