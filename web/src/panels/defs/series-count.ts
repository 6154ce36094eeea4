// SPDX-License-Identifier: Apache-2.0
import type { FigureDef } from "../types";

export const seriesCount: FigureDef = {
  id: "series-count",
  kind: "figure",
  title: "Series",
  question: "How many numbers does each collection bring?",
  unit: "count",
  query: { expr: "sum(scrape_samples_post_metric_relabeling{$nodes})", legend: "samples" },
  help: "Samples stored at each scrape, all targets together.",
  empty: { text: "Nothing has been scraped in this time range." },
};
