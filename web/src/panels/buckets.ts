// SPDX-License-Identifier: Apache-2.0

// Buckets of a Prometheus histogram: converts cumulative series by `le` into counts between two bounds. Pure. Source
// of the format: prometheus.io/docs/concepts/metric_types/#histogram
import type { Frame } from "../lib/series";
import { formatValue, type Unit } from "../lib/units";

export interface Buckets {
  /** Unix seconds. A column covers the time since the previous one. */
  times: readonly number[];
  /** Upper bounds, ascending; the last may be Infinity. */
  bounds: readonly number[];
  /** By bucket and time. Null was not measured, 0 was measured without events. */
  cells: readonly (readonly (number | null)[])[];
}

/** Parses the label `le`. */
function parseBound(le: string): number {
  return le === "+Inf" ? Infinity : Number(le);
}

/**
 * Subtracts neighbouring cumulative series, named by `le`. One rate may lag behind another by a scrape, so
 * differences are at least zero.
 */
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

/** Adds the events of each series over all times into one column. A series without values stays null. */
export function addUpTime(frame: Frame, step: number): Frame {
  const sum = (values: readonly (number | null)[]): number | null =>
    values.reduce<number | null>((total, v) => (v === null ? total : (total ?? 0) + v * step), null);
  return { times: frame.times.slice(-1), series: frame.series.map((s) => ({ name: s.name, values: [sum(s.values)] })) };
}

/** Removes the empty buckets at both ends, except one that shows the end. */
export function trimBuckets(buckets: Buckets): Buckets {
  const full = buckets.cells.map((row) => row.some((v) => v !== null && v > 0));
  const first = full.indexOf(true);
  if (first < 0) return { ...buckets, bounds: [], cells: [] };
  const from = Math.max(0, first - 1);
  const to = Math.min(full.length, full.lastIndexOf(true) + 2);
  return { times: buckets.times, bounds: buckets.bounds.slice(from, to), cells: buckets.cells.slice(from, to) };
}

/** Returns the lower bound of a bucket: 0 for the first one. */
export function lowerBound(all: readonly number[], bound: number): number {
  return all[all.indexOf(bound) - 1] ?? 0;
}

/** "8 µs to 16 µs", "below 1 µs" or "above 4 s". */
export function bucketName(low: number, high: number, unit: Unit): string {
  if (high === Infinity) return `above ${formatValue(low, unit)}`;
  if (low === 0) return `up to ${formatValue(high, unit)}`;
  return `${formatValue(low, unit)} to ${formatValue(high, unit)}`;
}

/** Returns the sum of all buckets at a time; null if nothing was measured. */
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

/**
 * Steepness of the colour scale near zero, so that rare events, such as the slow tail, are visible beside frequent
 * ones.
 */
const STEEPNESS = 60;

/** Returns the position of a value on the colour scale, 0 to 1. It is logarithmic, and 0 only for zero. */
export function heatShare(value: number, greatest: number): number {
  return value <= 0 || greatest <= 0 ? 0 : Math.log1p((STEEPNESS * value) / greatest) / Math.log1p(STEEPNESS);
}

/** Returns the value at a position of the colour scale. */
export function heatValue(share: number, greatest: number): number {
  return (greatest * Math.expm1(share * Math.log1p(STEEPNESS))) / STEEPNESS;
}

/** Returns the quantile, interpolated within its bucket like histogram_quantile. */
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
