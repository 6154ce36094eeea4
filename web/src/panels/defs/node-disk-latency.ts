// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const nodeDiskLatency: ChartDef = {
  id: "node-disk-latency",
  kind: "lines",
  title: "Latency",
  question: "How long does a request take?",
  unit: "seconds",
  queries: [
    {
      expr:
        "sum by (device) ($rate(node_disk_read_time_seconds_total{$nodes}[$window])) / sum by (device) ($rate(node_disk_reads_completed_total{$nodes}[$window]))",
      legend: "{{device}} reads",
    },
    {
      expr:
        "sum by (device) ($rate(node_disk_write_time_seconds_total{$nodes}[$window])) / sum by (device) ($rate(node_disk_writes_completed_total{$nodes}[$window]))",
      legend: "{{device}} writes",
    },
  ],
  top: 12,
  help:
    "The mean of the requests that were completed, waiting in the queue included. Without requests there is no latency: a gap.",
  empty: { text: "No request was completed in this time range." },
};
