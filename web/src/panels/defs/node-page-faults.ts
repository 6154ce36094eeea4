// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const nodePageFaults: ChartDef = {
  id: "node-page-faults",
  kind: "lines",
  title: "Page faults, whole machine",
  question: "How many page faults are there?",
  unit: "per_second",
  queries: [
    { expr: "sum($rate(node_vmstat_pgfault{$nodes}[$window]))", legend: "all" },
    { expr: "sum($rate(node_vmstat_pgmajfault{$nodes}[$window]))", legend: "major" },
  ],
  help: "Major faults had to wait for a disk. The page System says which workload they belong to.",
  empty: { text: "No metrics of the machine (node_*) in this time range." },
};
