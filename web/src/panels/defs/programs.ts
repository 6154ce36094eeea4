// SPDX-License-Identifier: Apache-2.0
import type { TableDef } from "../types";

export const programs: TableDef = {
  id: "programs",
  kind: "table",
  title: "Programs in the kernel",
  question: "What does each probe cost?",
  unit: "seconds",
  keys: [
    { label: "program", title: "Program" },
  ],
  columns: [
    {
      title: "Instructions",
      unit: "count",
      expr: "sum by (program) (teescope_bpf_program_instructions{$nodes})",
    },
    {
      title: "Mean run",
      unit: "seconds",
      expr:
        "sum by (program) (teescope_bpf_program_sampled_run_seconds_total{$nodes}) / sum by (program) (teescope_bpf_program_sampled_runs_total{$nodes} > 0)",
    },
    {
      title: "Sampled runs",
      unit: "count",
      expr: "sum by (program) (teescope_bpf_program_sampled_runs_total{$nodes})",
    },
  ],
  sortBy: 0,
  help:
    "Instructions as verified by the kernel. Run time is sampled: the kernel's own statistics are on for short whiles only, because they cost more than the probes.",
  empty: { text: "No program has reported its cost." },
};
