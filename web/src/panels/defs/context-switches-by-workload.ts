// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const contextSwitchesByWorkload: ChartDef = {
  id: "context-switches-by-workload",
  kind: "lines",
  title: "Context switches by workload",
  question: "Who switches most?",
  unit: "per_second",
  queries: [
    {
      expr: "sum by (workload, instance) ($rate(teescope_context_switches_total{$workloads}[$window]))",
      legend: "{{workload}}",
    },
  ],
  top: 10,
  help: "Voluntary and involuntary together. `kernel` is kernel threads.",
  empty: { text: "No such event was counted in this time range.", probe: "switch" },
};
