// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const processesThreads: ChartDef = {
  id: "processes-threads",
  kind: "lines",
  title: "Processes and threads",
  question: "How many are alive?",
  unit: "count",
  queries: [
    { expr: "sum(teescope_processes{$workloads})", legend: "processes" },
    { expr: "sum(teescope_threads{$workloads})", legend: "threads" },
  ],
  help: "At each scrape.",
  empty: { text: "No process was reported in this time range." },
};
