// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const nodeForks: ChartDef = {
  id: "node-forks",
  kind: "lines",
  title: "Forks",
  question: "How many processes and threads are started?",
  unit: "per_second",
  queries: [
    { expr: "sum($rate(node_forks_total{$nodes}[$window]))", legend: "forks" },
  ],
  help: "Threads are counted too: to the kernel a thread is a fork.",
  empty: { text: "No metrics of the machine (node_*) in this time range." },
};
