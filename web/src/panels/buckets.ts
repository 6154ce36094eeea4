// SPDX-License-Identifier: Apache-2.0

// Buckets of a Prometheus histogram: from cumulative series by `le` to what
// lies between two bounds. Pure. Source of the format:
// prometheus.io/docs/concepts/metric_types/#histogram
import type { Frame } from "../lib/series";
import { formatValue, type Unit } from "../lib/units";

export interface Buckets {
  /** Unix seconds; a column is what happened up to its time, since the one before. */
  times: readonly number[];
  /** Upper bounds, ascending; the last may be Infinity. */
  bounds: readonly number[];
  /** By bucket and time. Null was not measured, 0 was measured and is nothing. */
  cells: readonly (readonly (number | null)[])[];
}

/** Reads the label `le`. */
function parseBound(le: string): number {
  return le === "+Inf" ? Infinity : Number(le);
}

/** Takes the cumulative series, named by `le`, apart. A rate may lag behind its neighbour's by a scrape: never below zero. */
export function toBuckets(frame: Frame): Buckets {
  const rows = frame.series
    .map((s) => ({ bound: parseBound(s.name), values: s.values }))
    .filter((row) => !Number.isNaN(row.bound))
    .sort((a, b) => a.bound - b.bound);
  const cells = rows.map((row, i) => {
    const below = rows[i - 1]?.values;
    return row.values.map((value, at) => (value === null ? null : Math.max(0, value - (below?.[at] ?? 0))));
  });
  return { times: frame.times, bounds: rows.map((row) => row.bound), cells };
}

/** How many events the rates of each series make over all times: one column. What was never measured stays absent. */
export function addUpTime(frame: Frame, step: number): Frame {
  const sum = (values: readonly (number | null)[]): number | null =>
    values.reduce<number | null>((total, v) => (v === null ? total : (total ?? 0) + v * step), null);
  return { times: frame.times.slice(-1), series: frame.series.map((s) => ({ name: s.name, values: [sum(s.values)] })) };
}

/** Leaves out the empty buckets at both ends, but for one, so that the edge is seen to be one. */
export function trimBuckets(buckets: Buckets): Buckets {
  const full = buckets.cells.map((row) => row.some((v) => v !== null && v > 0));
  const first = full.indexOf(true);
  if (first < 0) return { ...buckets, bounds: [], cells: [] };
  const from = Math.max(0, first - 1);
  const to = Math.min(full.length, full.lastIndexOf(true) + 2);
  return { times: buckets.times, bounds: buckets.bounds.slice(from, to), cells: buckets.cells.slice(from, to) };
}

/** The lower bound of a bucket: 0 below the first, which is that of a time or a size. */
export function lowerBound(all: readonly number[], bound: number): number {
  return all[all.indexOf(bound) - 1] ?? 0;
}

/** "8 µs to 16 µs", "below 1 µs" or "above 4 s". */
export function bucketName(low: number, high: number, unit: Unit): string {
  if (high === Infinity) return `above ${formatValue(low, unit)}`;
  if (low === 0) return `up to ${formatValue(high, unit)}`;
  return `${formatValue(low, unit)} to ${formatValue(high, unit)}`;
}

/** What one moment has in all buckets; null if nothing was measured. */
export function columnTotal(buckets: Buckets, at: number): number | null {
  let sum: number | null = null;
  for (const row of buckets.cells) {
    const value = row[at] ?? null;
    if (value !== null) sum = (sum ?? 0) + value;
  }
  return sum;
}

export function greatestCell(buckets: Buckets): number {
  return buckets.cells.reduce((max, row) => row.reduce<number>((m, v) => Math.max(m, v ?? 0), max), 0);
}

/** How much steeper the colour scale is at its foot: what happens seldom, the slow tail, has to be seen beside what is frequent. */
const STEEPNESS = 60;

/** The place of a value on the colour scale, 0 to 1: logarithmic, and 0 for nothing. */
export function heatShare(value: number, greatest: number): number {
  return value <= 0 || greatest <= 0 ? 0 : Math.log1p((STEEPNESS * value) / greatest) / Math.log1p(STEEPNESS);
}

/** The value at a place of the colour scale. */
export function heatValue(share: number, greatest: number): number {
  return (greatest * Math.expm1(share * Math.log1p(STEEPNESS))) / STEEPNESS;
}

/** The bound below which a share of all lies, interpolated within its bucket as histogram_quantile does. */
export function bucketQuantile(share: number, bounds: readonly number[], counts: readonly number[]): number | null {
  const total = counts.reduce((sum, n) => sum + n, 0);
  if (total <= 0) return null;
  let left = share * total;
  for (const [i, count] of counts.entries()) {
    const high = bounds[i] ?? Infinity;
    const low = bounds[i - 1] ?? 0;
    if (left <= count && count > 0) return high === Infinity ? low : low + ((high - low) * left) / count;
    left -= count;
  }
  return bounds.at(-1) ?? null;
}
