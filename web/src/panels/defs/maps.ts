// SPDX-License-Identifier: Apache-2.0
import type { TableDef } from "../types";

export const maps: TableDef = {
  id: "maps",
  kind: "table",
  title: "Maps in the kernel",
  question: "How much kernel memory do the counters hold?",
  unit: "bytes",
  keys: [
    { label: "map", title: "Map" },
  ],
  columns: [
    { title: "Memory", unit: "bytes", expr: "sum by (map) (teescope_bpf_map_memory_bytes{$nodes})" },
  ],
  sortBy: 0,
  help: "Memory that the kernel accounts to each map.",
  empty: { text: "No map has reported its memory." },
};
