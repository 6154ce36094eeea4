// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const teeEstimatedExits: ChartDef = {
  id: "tee-estimated-exits",
  kind: "lines",
  title: "Exits that are only guessed",
  question: "How often may enclaves be left of which nothing is measured?",
  unit: "per_second",
  queries: [
    {
      expr: "sum by (workload, instance) ($rate(teescope_enclave_exits_estimated_total{$workloads}[$window]))",
      legend: "{{workload}}",
    },
  ],
  top: 10,
  help:
    "System calls of programs with an enclave whose runtime shows no crossings. One exit may make none of them or several, so it is an order of magnitude and no bound. It is in none of the other charts.",
  empty: { text: "The crossings of every enclave that was seen are measured, or there was none." },
};
