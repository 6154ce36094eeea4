// SPDX-License-Identifier: Apache-2.0
import type { FigureDef } from "../types";

export const agentCpu: FigureDef = {
  id: "agent-cpu",
  kind: "figure",
  title: "CPU of teescope",
  question: "How much processor does watching take?",
  unit: "cores",
  query: { expr: "sum($rate(process_cpu_seconds_total{$nodes}[$window]) and on (instance, job) teescope_build_info{$nodes})", legend: "CPU" },
  help:
    "CPU seconds in a second of the teescope process itself: reading, scraping, storing and answering this page. Time inside the probes is charged to whom they interrupt.",
  empty: { text: "teescope does not report its own CPU time." },
};
