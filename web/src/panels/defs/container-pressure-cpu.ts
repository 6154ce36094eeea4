// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const containerPressureCpu: ChartDef = {
  id: "container-pressure-cpu",
  kind: "lines",
  title: "Waiting for CPU",
  question: "Which container waits for a processor?",
  unit: "ratio",
  queries: [
    {
      expr:
        "sum by (name, pod, container, instance) ($rate(container_pressure_cpu_waiting_seconds_total{name!=\"\",container!=\"POD\",$nodes}[$window]) $containers)",
      legend: "{{pod}}/{{container}}|{{pod}}|{{name}}",
    },
  ],
  top: 10,
  help: "Pressure stall information (PSI): the share of time in which at least one task of the container waited.",
  empty: { text: "No container reported its pressure. It needs control groups v2 and a kernel with PSI." },
};
