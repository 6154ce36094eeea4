// SPDX-License-Identifier: Apache-2.0
import type { TableDef } from "../types";

export const probes: TableDef = {
  id: "probes",
  kind: "table",
  title: "Probes",
  question: "What is watched in the kernel, and by which mechanism?",
  unit: "yes_no",
  keys: [
    { label: "probe", title: "Probe" },
    { label: "instance", title: "Instance" },
  ],
  info: {
    expr: "teescope_probe_attached{$nodes}",
    labels: [
      { label: "mechanism", title: "Mechanism" },
      { label: "reason", title: "Remark" },
    ],
  },
  columns: [
    { title: "Attached", unit: "yes_no", expr: "max by (probe, instance) (teescope_probe_attached{$nodes})" },
    { title: "Of the time", unit: "ratio", expr: "max by (probe, instance) (teescope_sampling_ratio{$nodes})" },
  ],
  help:
    "Each probe tries the cheapest mechanism first and falls back. What could not be attached is absent from the charts, not zero. A dash is a probe that always looks. Below 100 % of the time, what a probe counts is scaled up, and short bursts may be missed; --overhead.budget=100% counts every event.",
  empty: { text: "No probe has reported. Is the target up?" },
};
