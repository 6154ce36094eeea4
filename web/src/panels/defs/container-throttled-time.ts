// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const containerThrottledTime: ChartDef = {
  id: "container-throttled-time",
  kind: "lines",
  title: "Throttled time",
  question: "How much time do quotas cost?",
  unit: "seconds_per_second",
  queries: [
    {
      expr:
        "sum by (name, pod, container, instance) ($rate(container_cpu_cfs_throttled_seconds_total{name!=\"\",container!=\"POD\",$nodes}[$window]) $containers)",
      legend: "{{pod}}/{{container}}|{{pod}}|{{name}}",
    },
  ],
  top: 10,
  help: "Time in which threads were ready to run and held back, summed over processors.",
  empty: { text: "No container with a CPU quota ran in this time range." },
};
