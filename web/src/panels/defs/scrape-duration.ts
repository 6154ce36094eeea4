// SPDX-License-Identifier: Apache-2.0
import type { FigureDef } from "../types";

export const scrapeDuration: FigureDef = {
  id: "scrape-duration",
  kind: "figure",
  title: "Scrape",
  question: "How long does one collection take?",
  unit: "seconds",
  query: { expr: "max(scrape_duration_seconds{$nodes} and on (instance, job) teescope_build_info{$nodes})", legend: "duration" },
  help: "Time from asking the agent for its metrics to having them all.",
  empty: { text: "Nothing has been scraped in this time range." },
};
