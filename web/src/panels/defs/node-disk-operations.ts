// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const nodeDiskOperations: ChartDef = {
  id: "node-disk-operations",
  kind: "lines",
  title: "Operations",
  question: "How many requests reach the disks?",
  unit: "per_second",
  queries: [
    { expr: "sum by (device) ($rate(node_disk_reads_completed_total{$nodes}[$window]))", legend: "{{device}} reads" },
    { expr: "sum by (device) ($rate(node_disk_writes_completed_total{$nodes}[$window]))", legend: "{{device}} writes" },
  ],
  top: 12,
  help: "Completed requests, after the kernel has merged neighbours.",
  empty: { text: "No metrics of the machine (node_*) in this time range." },
};
