// SPDX-License-Identifier: Apache-2.0

// Names of the series of a result, and its rows as a table. Pure.
import type { InstantSample, Labels } from "../../api/types";

/** Returns the labels whose values differ between series, sorted. */
function varyingLabels(all: readonly Labels[]): string[] {
  const names = [...new Set(all.flatMap((labels) => Object.keys(labels)))].sort();
  return names.filter((name) => new Set(all.map((labels) => labels[name] ?? "")).size > 1);
}

/** Names each series by its varying labels. A single series is named by all its labels, or by the query. */
export function nameSeries(all: readonly Labels[], expr: string): string[] {
  const varying = varyingLabels(all);
  const [only] = varying;
  if (only !== undefined && varying.length === 1) return all.map((labels) => labels[only] ?? `(no ${only})`);
  return all.map((labels) => {
    const shown = all.length === 1 ? Object.keys(labels).sort() : varying;
    const metric = shown.includes("__name__") ? (labels["__name__"] ?? "") : "";
    const rest = shown.filter((name) => name !== "__name__" && labels[name] !== undefined);
    const written = rest.map((name) => `${name}=${labels[name] ?? ""}`).join(", ");
    if (metric !== "" && written !== "") return `${metric} (${written})`;
    return metric || written || expr.slice(0, 60);
  });
}

/** Maximum number of rows in a table. */
export const MOST_ROWS = 500;

export interface SampleTable {
  labels: string[];
  rows: { labels: string[]; value: number }[];
  leftOut: number;
}

/** Sorts descending. NaN comes last. */
export function tableOf(samples: readonly InstantSample[]): SampleTable {
  const labels = [...new Set(samples.flatMap((s) => Object.keys(s.metric)))].sort();
  const order = (v: number): number => (Number.isNaN(v) ? -Infinity : v);
  const rows = samples
    .map((s) => ({ labels: labels.map((name) => s.metric[name] ?? ""), value: s.value[1] }))
    .sort((a, b) => order(b.value) - order(a.value) || (a.labels.join() < b.labels.join() ? -1 : 1));
  return { labels, rows: rows.slice(0, MOST_ROWS), leftOut: Math.max(0, rows.length - MOST_ROWS) };
}
