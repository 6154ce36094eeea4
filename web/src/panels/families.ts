// SPDX-License-Identifier: Apache-2.0

// The metrics of each panel. metrics.json is generated from the panels by Go, which has Prometheus' own parser (`make
// generate-dashboards`).
import metrics from "./metrics.json";
import type { PanelDef } from "./types";

const OF: Readonly<Record<string, readonly string[] | undefined>> = metrics;

/** Returns the metrics of a panel as in docs/user/metrics.md: histograms without the suffixes of their series. */
export function families({ id }: Pick<PanelDef, "id">): readonly string[] {
  return OF[id] ?? [];
}
