// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const llc: ChartDef = {
  id: "llc",
  kind: "lines",
  title: "Last-level cache",
  question: "Does the working set fit the cache?",
  unit: "per_second",
  queries: [
    { expr: "sum($rate(teescope_llc_references_total{$workloads}[$window]))", legend: "references" },
    { expr: "sum($rate(teescope_llc_misses_total{$workloads}[$window]))", legend: "misses" },
  ],
  help:
    "References to the last-level cache and those that went on to memory. In an encrypted memory region each miss also pays for decryption.",
  empty: {
    text:
      "No last-level cache counters. They need a hardware performance unit (PMU), which virtual machines often do not have.",
    probe: "llc|cache_ref|cache_miss|pmu",
  },
};
