// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const teeTransitionsByWorkload: ChartDef = {
  id: "tee-transitions-by-workload",
  kind: "stacked",
  title: "Transitions by workload",
  question: "Who crosses the boundary?",
  unit: "per_second",
  queries: [
    {
      expr: "sum by (workload, instance) ($rate(teescope_enclave_transitions_total{$workloads}[$window]))",
      legend: "{{workload}}",
    },
  ],
  top: 10,
  help:
    "Entries, exits and interrupts of a workload's enclaves together.",
  empty: { text: "No runtime whose transitions can be seen ran in this time range." },
};
