// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const nodeLoad: ChartDef = {
  id: "node-load",
  kind: "lines",
  title: "Load",
  question: "Do more tasks want to run than there are processors?",
  unit: "count",
  queries: [
    { expr: "sum(node_load1{$nodes})", legend: "1 minute" },
    { expr: "sum(node_load5{$nodes})", legend: "5 minutes" },
    { expr: "sum(node_load15{$nodes})", legend: "15 minutes" },
    {
      expr: "count(count by (instance, cpu) ($rate(node_cpu_seconds_total{mode=\"idle\",$nodes}[$window])))",
      legend: "processors",
    },
  ],
  ordered: true,
  help:
    "Tasks that run, are ready to run, or wait in a sleep that cannot be interrupted, mostly for disks; a damped mean.",
  empty: { text: "No metrics of the machine (node_*) in this time range." },
};
