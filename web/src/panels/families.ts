// SPDX-License-Identifier: Apache-2.0

// The metrics of each panel. metrics.json has what Prometheus' own parser finds in the queries (`make generate-dashboards`), and a
// test compares it with this. The page does not load metrics.json: compressed it has 2 kB, and this has 0.1 kB.
import { expressions } from "./panel-queries";
import type { PanelDef } from "./types";

/** Returns the metrics of a panel as in docs/user/metrics.md: histograms without the suffixes of their series. */
export function families(def: PanelDef): readonly string[] {
  const selected = expressions(def).flatMap((expr) => [...expr.matchAll(/([a-z][\w:]*)\{/g)].map(([, name = ""]) => name.replace(/_(bucket|sum|count)$/, "")));
  return [...new Set(selected)];
}
