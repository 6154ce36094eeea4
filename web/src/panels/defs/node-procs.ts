// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const nodeProcs: ChartDef = {
  id: "node-procs",
  kind: "lines",
  title: "Running and blocked",
  question: "How many tasks run or wait for a disk?",
  unit: "count",
  queries: [
    { expr: "sum(node_procs_running{$nodes})", legend: "running" },
    { expr: "sum(node_procs_blocked{$nodes})", legend: "blocked" },
  ],
  help: "At the moment of each scrape: short peaks between two scrapes are not seen.",
  empty: { text: "No metrics of the machine (node_*) in this time range." },
};
