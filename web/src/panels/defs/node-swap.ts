// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const nodeSwap: ChartDef = {
  id: "node-swap",
  kind: "stacked",
  title: "Swap",
  question: "Is memory swapped out?",
  unit: "bytes",
  queries: [
    { expr: "sum((node_memory_SwapTotal_bytes{$nodes} > 0) - node_memory_SwapFree_bytes{$nodes})", legend: "used" },
    { expr: "sum(node_memory_SwapFree_bytes{$nodes} and node_memory_SwapTotal_bytes{$nodes} > 0)", legend: "free" },
  ],
  ordered: true,
  help: "Programs whose memory is swapped out wait for the disk when they touch it.",
  empty: { text: "This machine has no swap in this time range." },
};
