// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const nodeDiskUtilisation: ChartDef = {
  id: "node-disk-utilisation",
  kind: "lines",
  title: "Utilisation",
  question: "Is a disk busy all the time?",
  unit: "ratio",
  queries: [
    { expr: "max by (device) ($rate(node_disk_io_time_seconds_total{$nodes}[$window]))", legend: "{{device}}" },
  ],
  top: 12,
  help: "The share of time with at least one request under way. A disk that serves many at once is not full at 100 %.",
  empty: { text: "No metrics of the machine (node_*) in this time range." },
};
