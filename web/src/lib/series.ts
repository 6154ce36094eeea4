// SPDX-License-Identifier: Apache-2.0

// Series on a common grid of times. A missing point is null, never zero.

interface Series {
  name: string;
  /** One value for each time of the grid. */
  values: (number | null)[];
}

export interface Frame {
  /** Unix seconds, ascending, evenly spaced. */
  times: number[];
  series: Series[];
}

export interface RawSeries {
  name: string;
  points: readonly (readonly [number, number])[];
}

/** Puts raw points on a grid. Series of the same name are added. */
export function toFrame(raw: readonly RawSeries[], from: number, to: number, step: number): Frame {
  const count = Math.max(0, Math.round((to - from) / step) + 1);
  const times = Array.from({ length: count }, (_, i) => from + i * step);
  const byName = new Map<string, Series>();
  for (const { name, points } of raw) {
    let series = byName.get(name);
    if (!series) {
      series = { name, values: new Array<number | null>(count).fill(null) };
      byName.set(name, series);
    }
    for (const [time, value] of points) {
      const index = Math.round((time - from) / step);
      if (index < 0 || index >= count || !Number.isFinite(value)) continue;
      series.values[index] = (series.values[index] ?? 0) + value;
    }
  }
  return { times, series: [...byName.values()] };
}

/**
 * Extends a frame by a newer one on the same grid. The newer points replace older ones of the same time, and times
 * before `from` are dropped.
 */
export function extendFrame(old: Frame, newer: Frame, from: number): Frame {
  const firstNew = newer.times[0] ?? Infinity;
  const older = old.times.flatMap((time, i) => (time >= from && time < firstNew ? [i] : []));
  const times = [...older.map((i) => old.times[i] ?? 0), ...newer.times];
  const names = new Set([...old.series, ...newer.series].map((s) => s.name));
  const find = (frame: Frame, name: string): Series | undefined => frame.series.find((s) => s.name === name);
  const series: Series[] = [];
  for (const name of names) {
    const before = find(old, name);
    const after = find(newer, name);
    const values = [
      ...older.map((i) => before?.values[i] ?? null),
      ...newer.times.map((_, i) => after?.values[i] ?? null),
    ];
    if (values.some((value) => value !== null)) series.push({ name, values });
  }
  return { times, series };
}

/** Returns the sum of all values, which is the weight of a series in a fold. */
function weight(series: Series): number {
  return series.values.reduce<number>((sum, value) => sum + Math.abs(value ?? 0), 0);
}

/** Returns the last value that is not null. */
export function lastValue(values: readonly (number | null)[]): number | null {
  for (let i = values.length - 1; i >= 0; i--) {
    const value = values[i];
    if (value !== null && value !== undefined) return value;
  }
  return null;
}

/** Adds series point by point. A time at which no series has a value stays null. */
function addUp(name: string, parts: readonly Series[], length: number): Series {
  const values = new Array<number | null>(length).fill(null);
  for (const part of parts) {
    part.values.forEach((value, i) => {
      if (value !== null) values[i] = (values[i] ?? 0) + value;
    });
  }
  return { name, values };
}

/** The name of folded series. The workload `other` is something else: the agent folds into it. */
export function restName(count: number): string {
  return `the rest (${count})`;
}

export interface Folded {
  frame: Frame;
  /** Number of series that were folded into the last one, or left out; 0 if none. */
  count: number;
}

/**
 * Keeps the `top` heaviest series. The others are added up, or left out where a sum has no meaning. Series are
 * ordered by weight over the whole range, so that the order is stable from point to point.
 */
export function fold(frame: Frame, top: number, additive = true): Folded {
  const sorted = [...frame.series].sort((a, b) => weight(b) - weight(a) || a.name.localeCompare(b.name));
  if (sorted.length <= top + 1) return { frame: { times: frame.times, series: sorted }, count: 0 };
  const rest = sorted.slice(top);
  if (!additive) return { frame: { times: frame.times, series: sorted.slice(0, top) }, count: rest.length };
  const folded = addUp(restName(rest.length), rest, frame.times.length);
  return { frame: { times: frame.times, series: [...sorted.slice(0, top), folded] }, count: rest.length };
}

/** Stacks series: each becomes the sum of itself and those before it. */
export function stack(frame: Frame): (number | null)[][] {
  const floor = new Array<number>(frame.times.length).fill(0);
  const present = frame.times.map((_, i) => frame.series.some((s) => s.values[i] !== null));
  return frame.series.map((series) =>
    series.values.map((value, i) => {
      floor[i] = (floor[i] ?? 0) + (value ?? 0);
      return present[i] ? (floor[i] ?? null) : null;
    }),
  );
}

/** Errors of the values of series, by the name of the series. */
export type Errors = ReadonlyMap<string, readonly (number | null)[]>;

/** Separates the series whose names begin with a prefix. They are the errors of the series named after it. */
export function splitErrors(frame: Frame, prefix: string): { frame: Frame; errors: Errors } {
  const isError = (s: Series): boolean => s.name.startsWith(prefix);
  return {
    frame: { times: frame.times, series: frame.series.filter((s) => !isError(s)) },
    errors: new Map(frame.series.filter(isError).map((s) => [s.name.slice(prefix.length), s.values])),
  };
}

/** Returns the lower and upper end of the interval of a series at each point, or nothing if no point has an error. */
export function bandOf(series: Series, errors: Errors): (readonly [number, number] | null)[] | undefined {
  const half = errors.get(series.name);
  if (!half?.some((h) => h !== null && h > 0)) return undefined;
  return series.values.map((value, i) => {
    const error = half[i];
    return value === null || error === null || error === undefined ? null : [Math.max(0, value - error), value + error];
  });
}
