// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const teeTransitions: ChartDef = {
  id: "tee-transitions",
  kind: "lines",
  title: "Enclave transitions",
  question: "How often is the boundary crossed?",
  unit: "per_second",
  queries: [
    {
      expr: "sum by (kind) ($rate(teescope_enclave_transitions_total{$workloads}[$window]))",
      legend: "{{kind}}",
    },
  ],
  help:
    "eenter and eexit: calls into and out of the enclave. aex: interrupts and exceptions that threw a thread out of it. Each costs 8,000 to 20,000 cycles. Measured as the runtime allows; the source is in the metric.",
  empty: { text: "No runtime whose transitions can be seen ran in this time range." },
};
