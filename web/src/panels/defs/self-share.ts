// SPDX-License-Identifier: Apache-2.0
import type { FigureDef } from "../types";

export const selfShare: FigureDef = {
  id: "self-share",
  kind: "figure",
  title: "Share of the machine",
  question: "What part of the machine does watching take from the workloads?",
  unit: "ratio",
  query: { expr: "max(sum by (instance) (teescope_self_cpu_ratio{$nodes}))", legend: "share" },
  help:
    "CPU time of this program, measured, and of the probes, reckoned from how often each event comes and what it costs where it happens. Above the budget (overhead.budget) less is watched. Of several machines, the one with the most.",
  empty: { text: "Not known before the first seconds of watching have passed." },
};
