// SPDX-License-Identifier: Apache-2.0
import type { HistogramDef } from "../types";

export const teeEnclaveStart: HistogramDef = {
  id: "tee-enclave-start",
  kind: "histogram",
  title: "How long enclaves take to start",
  question: "Is starting an enclave dear here?",
  unit: "seconds",
  queries: [{ expr: "sum by (le) (rate(sgx_enclave_start_seconds_bucket{$nodes}[$window]))", legend: "{{le}}" }],
  help:
    "Enclaves that started in the shown time range, by how long it took from ECREATE to EINIT: adding and measuring their pages. n is an estimate: what lies within four scrapes of the ends of the range counts in part.",
  empty: { text: "No enclave started in this time range.", probe: "sgx_" },
};
