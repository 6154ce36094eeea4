// SPDX-License-Identifier: Apache-2.0

// What the page has to learn before it queries panels, as keys: answers count for the view with the same key.
import { mappings } from "./filters";
import { nodeMatcher } from "./promql";
import type { ViewState } from "./url";

/** Which workloads the filters of containers, pods and runtimes mean; empty without such a filter. */
export function mappingKey({ filters, range, fixed }: Pick<ViewState, "filters" | "range" | "fixed">): string {
  const wanted = mappings(filters);
  return wanted.length === 0 ? "" : JSON.stringify([wanted, fixed ?? range]);
}

/** Which machines the filter of nodes leaves. */
export function nodesKey({ filters }: Pick<ViewState, "filters">): string {
  return nodeMatcher({ workloads: [], filters });
}
