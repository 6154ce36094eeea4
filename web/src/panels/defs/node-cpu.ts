// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const nodeCpu: ChartDef = {
  id: "node-cpu",
  kind: "stacked",
  title: "CPU by mode, whole machine",
  question: "What are the processors busy with?",
  unit: "cores",
  queries: [
    { expr: "sum by (mode) ($rate(node_cpu_seconds_total{mode!=\"idle\",$nodes}[$window]))", legend: "{{mode}}" },
  ],
  help:
    "Processors kept busy, as the kernel accounts it in /proc/stat. Waiting for I/O is idle time with a disk request outstanding; steal was taken by other virtual machines.",
  empty: { text: "No metrics of the machine (node_*) in this time range." },
};
