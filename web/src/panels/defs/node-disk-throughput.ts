// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const nodeDiskThroughput: ChartDef = {
  id: "node-disk-throughput",
  kind: "lines",
  title: "Throughput",
  question: "How much is read and written?",
  unit: "bytes_per_second",
  queries: [
    { expr: "sum by (device) ($rate(node_disk_read_bytes_total{$nodes}[$window]))", legend: "{{device}} read" },
    { expr: "sum by (device) ($rate(node_disk_written_bytes_total{$nodes}[$window]))", legend: "{{device}} written" },
  ],
  top: 12,
  help: "By block device. A device made of others, such as a logical volume, has the same bytes as they have.",
  empty: { text: "No metrics of the machine (node_*) in this time range." },
};
