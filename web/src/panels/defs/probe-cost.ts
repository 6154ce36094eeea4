// SPDX-License-Identifier: Apache-2.0
import type { FigureDef } from "../types";

export const probeCost: FigureDef = {
  id: "probe-cost",
  kind: "figure",
  title: "Cost of a probe run",
  question: "What does one event cost the workload?",
  unit: "seconds",
  query: {
    expr:
      "sum(teescope_bpf_program_sampled_run_seconds_total{$nodes}) / sum(teescope_bpf_program_sampled_runs_total{$nodes})",
    legend: "mean run",
  },
  help:
    "Mean run time of an in-kernel program over all runs that were sampled since teescope started; the kernel's own cost of calling it is not in it.",
  empty: { text: "No probe run has been sampled." },
};
