// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const teeEncls: ChartDef = {
  id: "tee-encls",
  kind: "lines",
  title: "What the driver asks of the processor",
  question: "Which ENCLS instructions are executed?",
  unit: "per_second",
  queries: [
    {
      expr: "sum by (leaf) ($rate(sgx_encls_total{result=\"succeeded\",$nodes}[$window]))",
      legend: "{{leaf}}",
    },
  ],
  top: 10,
  help:
    "Leaves of ENCLS that follow exactly from what the driver does; EEXTEND is 16 for each measured page.",
  empty: { text: "No ENCLS instruction was executed in this time range.", probe: "sgx_" },
};
