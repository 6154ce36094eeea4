// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const nodeMemory: ChartDef = {
  id: "node-memory",
  kind: "stacked",
  title: "Memory",
  question: "What is the memory used for?",
  unit: "bytes",
  queries: [
    {
      expr:
        "sum(node_memory_MemTotal_bytes{$nodes} - node_memory_MemFree_bytes{$nodes} - node_memory_Buffers_bytes{$nodes} - node_memory_Cached_bytes{$nodes} - node_memory_SReclaimable_bytes{$nodes})",
      legend: "used",
    },
    { expr: "sum(node_memory_Cached_bytes{$nodes} + node_memory_SReclaimable_bytes{$nodes})", legend: "cache" },
    { expr: "sum(node_memory_Buffers_bytes{$nodes})", legend: "buffers" },
    { expr: "sum(node_memory_MemFree_bytes{$nodes})", legend: "free" },
  ],
  ordered: true,
  help:
    "Cache and buffers are given back when programs need memory, except for shared memory and tmpfs, which are counted in cache too.",
  empty: { text: "No metrics of the machine (node_*) in this time range." },
};
