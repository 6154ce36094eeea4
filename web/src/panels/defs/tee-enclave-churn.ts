// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const teeEnclaveChurn: ChartDef = {
  id: "tee-enclave-churn",
  kind: "lines",
  title: "Enclaves that start and end",
  question: "Does something make enclaves again and again?",
  unit: "per_second",
  queries: [
    {
      expr: "sum($rate(sgx_enclaves_created_total{$nodes}[$window]))",
      legend: "created",
    },
    {
      expr: "sum($rate(sgx_enclaves_initialized_total{$nodes}[$window]))",
      legend: "initialized",
    },
    {
      expr: "sum($rate(sgx_enclaves_released_total{$nodes}[$window]))",
      legend: "released",
    },
  ],
  ordered: true,
  help:
    "Fork and exec copy or build whole enclaves: at a steady rate that is often the dearest thing a workload does.",
  empty: { text: "No enclave started or ended in this time range.", probe: "sgx_" },
};
