// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const teePaging: ChartDef = {
  id: "tee-paging",
  kind: "lines",
  title: "Paging of enclave memory",
  question: "How many pages are evicted and loaded back?",
  unit: "per_second",
  queries: [
    {
      expr: "sum($rate(sgx_epc_pages_evicted_total{$nodes}[$window]))",
      legend: "evicted (EWB)",
    },
    {
      expr: "sum($rate(sgx_epc_pages_loaded_back_total{$nodes}[$window]))",
      legend: "loaded back (ELDU)",
    },
    {
      expr: "sum($rate(sgx_epc_pages_added_total{$nodes}[$window]))",
      legend: "added (EADD)",
    },
    {
      expr: "sum($rate(sgx_epc_pages_augmented_total{$nodes}[$window]))",
      legend: "added while running (EAUG)",
    },
  ],
  ordered: true,
  help:
    "An evicted page is encrypted and written to main memory, and decrypted and checked when it is loaded back: 12,000 to 40,000 cycles together. Loading back for long means that the working sets do not fit.",
  empty: { text: "No page was added, evicted or loaded back in this time range.", probe: "sgx_" },
};
