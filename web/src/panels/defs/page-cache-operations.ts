// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const pageCacheOperations: ChartDef = {
  id: "page-cache-operations",
  kind: "lines",
  title: "Page cache operations",
  question: "How much does the workload read and dirty through the page cache?",
  unit: "per_second",
  queries: [
    {
      expr: "sum by (op) ($rate(teescope_page_cache_ops_total{$workloads}[$window]))",
      legend: "{{op}}",
    },
  ],
  help:
    "Insertions are pages read in, accesses are hits, dirty_page and dirty_buffer are writes that must reach storage later.",
  empty: {
    text: "No page cache operation was counted in this time range.",
    probe: "cache|folio|page|buffer|dirty",
  },
};
