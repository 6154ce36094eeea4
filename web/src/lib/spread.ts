// SPDX-License-Identifier: Apache-2.0

// Median and quartiles of values, and the comparison of two of them.

export interface Spread {
  /** Number of values that are not null. */
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

/** Returns undefined where there is no value. */
export function spreadOf(values: readonly (number | null)[]): Spread | undefined {
  const sorted = values.filter((v): v is number => v !== null && Number.isFinite(v)).sort((a, b) => a - b);
  if (sorted.length === 0) return undefined;
  return { n: sorted.length, q1: quantile(sorted, 0.25), median: quantile(sorted, 0.5), q3: quantile(sorted, 0.75) };
}

export interface Ratio {
  value: number;
  /** Bounds from the quartiles: the lower of B by the upper of A, and the other way round. May be infinite. */
  low: number;
  high: number;
}

/** Returns the ratio of medians B/A; undefined where one is missing or that of A is zero. */
export function ratioOf(a: Spread | undefined, b: Spread | undefined): Ratio | undefined {
  if (!a || !b || a.median <= 0) return undefined;
  return { value: b.median / a.median, low: a.q3 > 0 ? b.q1 / a.q3 : 0, high: a.q1 > 0 ? b.q3 / a.q1 : Infinity };
}

/** Reports whether the interquartile ranges do not overlap. */
export function areApart(a: Spread, b: Spread): boolean {
  return a.q3 < b.q1 || b.q3 < a.q1;
}
