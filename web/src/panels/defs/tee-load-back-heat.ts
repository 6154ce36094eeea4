// SPDX-License-Identifier: Apache-2.0
import type { HeatmapDef } from "../types";

export const teeLoadBackHeat: HeatmapDef = {
  id: "tee-load-back-heat",
  kind: "heatmap",
  title: "Waiting for an evicted page, all of them",
  question: "Are all waits for a page alike, or do some take much longer?",
  unit: "seconds",
  queries: [{ expr: "sum by (le) ($rate(sgx_load_back_seconds_bucket{$nodes}[$window]))", legend: "{{le}}" }],
  help:
    "Waits in a second, by how long they took: from the first fault on an evicted page until it is loaded. Two bands mean two ways to be slow. The bounds of the histogram are powers of two.",
  empty: { text: "No page was loaded back in this time range.", probe: "sgx_" },
};
