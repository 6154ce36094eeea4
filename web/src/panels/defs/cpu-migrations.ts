// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const cpuMigrations: ChartDef = {
  id: "cpu-migrations",
  kind: "lines",
  title: "CPU migrations",
  question: "How often do threads move to another processor?",
  unit: "per_second",
  queries: [
    {
      expr: "sum by (workload, instance) ($rate(teescope_cpu_migrations_total{$workloads}[$window]))",
      legend: "{{workload}}",
    },
  ],
  top: 10,
  help: "Each move leaves a warm cache behind.",
  empty: { text: "No thread moved to another processor in this time range.", probe: "migrate" },
};
