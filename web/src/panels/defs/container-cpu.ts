// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const containerCpu: ChartDef = {
  id: "container-cpu",
  kind: "stacked",
  title: "CPU by container",
  question: "Which container uses the processors?",
  unit: "cores",
  queries: [
    {
      expr:
        "sum by (name, pod, container, instance) ($rate(container_cpu_usage_seconds_total{name!=\"\",container!=\"POD\",$nodes}[$window]) $containers)",
      legend: "{{pod}}/{{container}}|{{pod}}|{{name}}",
    },
  ],
  top: 10,
  help:
    "User and system time together, in processors kept busy. A container within a container is part of the outer one.",
  empty: { text: "No container used CPU time in this time range." },
};
