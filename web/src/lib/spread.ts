// SPDX-License-Identifier: Apache-2.0

// Median and quartiles of what is there, and what two of them say of each other.

export interface Spread {
  /** Values that are there. */
  n: number;
  q1: number;
  median: number;
  q3: number;
}

/** The quantile of sorted values, by linear interpolation between neighbours (type 7 of Hyndman and Fan). */
export function quantile(sorted: readonly number[], q: number): number {
  const at = (sorted.length - 1) * q;
  const low = sorted[Math.floor(at)] ?? NaN;
  const high = sorted[Math.ceil(at)] ?? NaN;
  return low + (high - low) * (at - Math.floor(at));
}

/** Undefined where nothing was measured. */
export function spreadOf(values: readonly (number | null)[]): Spread | undefined {
  const sorted = values.filter((v): v is number => v !== null && Number.isFinite(v)).sort((a, b) => a - b);
  if (sorted.length === 0) return undefined;
  return { n: sorted.length, q1: quantile(sorted, 0.25), median: quantile(sorted, 0.5), q3: quantile(sorted, 0.75) };
}

export interface Ratio {
  value: number;
  /** What the quartiles leave open: the least of B by the most of A, and the other way round; may be infinite. */
  low: number;
  high: number;
}

/** The ratio of medians B/A; undefined where the median of A is zero or one is not there. */
export function ratioOf(a: Spread | undefined, b: Spread | undefined): Ratio | undefined {
  if (!a || !b || a.median <= 0) return undefined;
  return { value: b.median / a.median, low: a.q3 > 0 ? b.q1 / a.q3 : 0, high: a.q1 > 0 ? b.q3 / a.q1 : Infinity };
}

/** Whether the middle halves lie apart. */
export function areApart(a: Spread, b: Spread): boolean {
  return a.q3 < b.q1 || b.q3 < a.q1;
}
