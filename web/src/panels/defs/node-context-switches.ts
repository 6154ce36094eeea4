// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const nodeContextSwitches: ChartDef = {
  id: "node-context-switches",
  kind: "lines",
  title: "Context switches, whole machine",
  question: "How often does the kernel change tasks?",
  unit: "per_second",
  queries: [
    { expr: "sum($rate(node_context_switches_total{$nodes}[$window]))", legend: "context switches" },
    { expr: "sum($rate(node_intr_total{$nodes}[$window]))", legend: "interrupts" },
  ],
  help: "As the kernel counts them in /proc/stat. The page System says which workload they belong to.",
  empty: { text: "No metrics of the machine (node_*) in this time range." },
};
