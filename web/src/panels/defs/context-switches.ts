// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const contextSwitches: ChartDef = {
  id: "context-switches",
  kind: "stacked",
  title: "Context switches by kind",
  question: "Does the workload wait, or is it pushed aside?",
  unit: "per_second",
  queries: [
    {
      expr: "sum by (kind) ($rate(teescope_context_switches_total{$workloads}[$window]))",
      legend: "{{kind}}",
    },
  ],
  help:
    "Voluntary: a thread gave up its processor to wait. Involuntary: the scheduler took the processor away, so others compete for it. Switches away from the idle task are left out unless `idle` is chosen in the filter.",
  empty: { text: "No such event was counted in this time range.", probe: "switch" },
};
