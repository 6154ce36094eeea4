// SPDX-License-Identifier: Apache-2.0

// What the page must query before its panels, as keys. An answer is valid for views with the same key.
import { mappings } from "./filters";
import { nodeMatcher } from "./promql";
import type { ViewState } from "./url";

/** The key of the workloads that the filters of containers, pods and runtimes select; empty without such a filter. */
export function mappingKey({ filters, range, fixed }: Pick<ViewState, "filters" | "range" | "fixed">): string {
  const wanted = mappings(filters);
  return wanted.length === 0 ? "" : JSON.stringify([wanted, fixed ?? range]);
}

/** The key of the machines that the filter of nodes selects. */
export function nodesKey({ filters }: Pick<ViewState, "filters">): string {
  return nodeMatcher({ workloads: [], filters });
}
