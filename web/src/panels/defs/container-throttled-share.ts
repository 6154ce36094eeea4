// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const containerThrottledShare: ChartDef = {
  id: "container-throttled-share",
  kind: "lines",
  title: "Throttled periods",
  question: "Which container runs into its CPU quota?",
  unit: "ratio",
  queries: [
    {
      expr:
        "sum by (name, pod, container, instance) ($rate(container_cpu_cfs_throttled_periods_total{name!=\"\",container!=\"POD\",$nodes}[$window]) $containers) / sum by (name, pod, container, instance) ($rate(container_cpu_cfs_periods_total{name!=\"\",container!=\"POD\",$nodes}[$window]) $containers)",
      legend: "{{pod}}/{{container}}|{{pod}}|{{name}}",
    },
  ],
  top: 10,
  thresholds: [{ at: 0.25, level: "warn" }], // as the alert has it
  help:
    "The share of the periods, 100 ms as a rule, in which the quota ran out and the container had to wait for the next one.",
  empty: { text: "No container with a CPU quota ran in this time range." },
};
