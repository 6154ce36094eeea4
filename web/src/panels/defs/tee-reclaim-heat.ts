// SPDX-License-Identifier: Apache-2.0
import type { HeatmapDef } from "../types";

export const teeReclaimHeat: HeatmapDef = {
  id: "tee-reclaim-heat",
  kind: "heatmap",
  title: "Stalls while pages are evicted",
  question: "How long do threads stand still to make room?",
  unit: "seconds",
  queries: [{ expr: "sum by (le) ($rate(sgx_reclaim_seconds_bucket{by=\"direct\",$nodes}[$window]))", legend: "{{le}}" }],
  help:
    "Batches of evictions in a second that a thread had to wait for itself, because no page was free, by how long they took. Evictions in the background stop nobody and are not in it.",
  empty: { text: "No thread had to evict pages itself in this time range.", probe: "sgx_" },
};
