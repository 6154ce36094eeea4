// SPDX-License-Identifier: Apache-2.0
import type { TableDef } from "../types";

export const collectors: TableDef = {
  id: "collectors",
  kind: "table",
  title: "Collectors",
  question: "Does everything that gathers numbers succeed?",
  unit: "yes_no",
  keys: [
    { label: "collector", title: "Collector" },
    { label: "instance", title: "Instance" },
  ],
  columns: [
    { title: "Succeeded", unit: "yes_no", expr: "teescope_collector_success{$nodes}" },
    { title: "Took", unit: "seconds", expr: "teescope_collector_duration_seconds{$nodes}", spark: true },
  ],
  help: "Each collector reports its own success; one that fails leaves the others alone.",
  empty: { text: "No collector has reported. Is the target up?" },
};
