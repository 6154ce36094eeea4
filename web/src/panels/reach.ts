// SPDX-License-Identifier: Apache-2.0

// Which values of a panel ignore the filters. The panel says so, because users expect filtered values. Pure.
import type { ViewState } from "../lib/url";
import { panelQueries } from "./panel-queries";
import type { PanelDef } from "./types";

const FILTERED = /\$(?:workloads|candidates|containers)\b/;

/**
 * Returns a sentence about values that ignore the current filters, or undefined. The filter of nodes applies to all
 * values.
 */
export function notReached(def: PanelDef, { workloads, filters }: Pick<ViewState, "workloads" | "filters">): string | undefined {
  if (workloads.length === 0 && filters.every((f) => f.kind === "node")) return undefined;
  const all = panelQueries(def);
  const free = all.filter(({ expr }) => !FILTERED.test(expr));
  if (free.length === 0) return undefined;
  if (free.length === all.length) return "Not filtered by workload: this is the whole machine.";
  const names = free.flatMap(({ legend }) => legend ?? []);
  return `Not filtered by workload: ${names.length > 0 ? names.join(", ") : "some of the columns"}.`;
}
