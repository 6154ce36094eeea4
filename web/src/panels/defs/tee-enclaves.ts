// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const teeEnclaves: ChartDef = {
  id: "tee-enclaves",
  kind: "lines",
  title: "Enclaves",
  question: "How many enclaves are there, and do they come and go?",
  unit: "count",
  queries: [
    {
      expr: "sum by (state) (sgx_enclaves{$nodes})",
      legend: "{{state}}",
    },
  ],
  ordered: true,
  help:
    "initialized enclaves can be entered; others are being built. Each start adds and measures all pages of the enclave.",
  empty: { text: "No enclave was seen in this time range." },
};
