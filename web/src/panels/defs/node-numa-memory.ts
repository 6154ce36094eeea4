// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const nodeNumaMemory: ChartDef = {
  id: "node-numa-memory",
  kind: "stacked",
  title: "Memory by NUMA node",
  question: "Is the memory of one node used up?",
  unit: "bytes",
  queries: [
    { expr: "sum by (node) (node_memory_numa_MemTotal{$nodes} - node_memory_numa_MemFree{$nodes})", legend: "node {{node}}" },
  ],
  help:
    "Used memory with cache, by the processor socket that it is attached to. Enclave memory (EPC) is bound to nodes too.",
  empty: { text: "No memory was reported by NUMA node in this time range." },
};
