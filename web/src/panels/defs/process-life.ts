// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const processLife: ChartDef = {
  id: "process-life",
  kind: "lines",
  title: "Forks, execs and exits",
  question: "Do processes come and go?",
  unit: "per_second",
  queries: [
    { expr: "sum($rate(teescope_forks_total{$workloads}[$window]))", legend: "forks" },
    { expr: "sum($rate(teescope_thread_starts_total{$workloads}[$window]))", legend: "thread starts" },
    { expr: "sum($rate(teescope_execs_total{$workloads}[$window]))", legend: "execs" },
    { expr: "sum($rate(teescope_exits_total{$workloads}[$window]))", legend: "exits" },
  ],
  help:
    "Starting a process inside an enclave is dear: memory is measured page by page. A shell script that forks shows here.",
  empty: { text: "No process began or ended in this time range.", probe: "fork|exec|exit" },
};
