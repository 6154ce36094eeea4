// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const teeLoadBackTime: ChartDef = {
  id: "tee-load-back-time",
  kind: "lines",
  title: "Waiting for an evicted page",
  question: "How long does a thread stand still for one page?",
  unit: "seconds",
  queries: [
    {
      expr: "histogram_quantile(0.5, sum by (le) ($rate(sgx_load_back_seconds_bucket{$nodes}[$window])))",
      legend: "half are below",
    },
    {
      expr: "histogram_quantile(0.99, sum by (le) ($rate(sgx_load_back_seconds_bucket{$nodes}[$window])))",
      legend: "99 in 100 are below",
    },
  ],
  ordered: true,
  help:
    "From the first fault on an evicted page until it is loaded, retries included. The bounds of the histogram are powers of two.",
  empty: { text: "No page was loaded back in this time range.", probe: "sgx_" },
};
