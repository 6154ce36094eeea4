// SPDX-License-Identifier: Apache-2.0

// Converts the series of two sides into rows: aligned in time, divided, summarised, and ordered by difference. Pure.
import type { ChartDef, Query } from "../../panels/types";
import { dividedUnit, type Divisor } from "../../lib/normalise";
import type { Frame } from "../../lib/series";
import { areApart, type Ratio, ratioOf, type Spread, spreadOf } from "../../lib/spread";
import { isAdditive, type Unit } from "../../lib/units";

/** What differs by more than the spread. */
export type Verdict = "most" | "apart" | "only-a" | "only-b" | "within" | "few";

export interface Row {
  id: string;
  title: string;
  unit: Unit;
  /** Whether it was divided. Values that are not rates never are. */
  divided: boolean;
  /** Whether it is the whole of a panel, or one of its parts. */
  whole: boolean;
  /** On the times of A. */
  a: (number | null)[];
  b: (number | null)[];
  spreadA: Spread | undefined;
  spreadB: Spread | undefined;
  ratio: Ratio | undefined;
  verdict: Verdict;
}

/** A panel with the series of both sides. */
export interface Sides {
  def: ChartDef;
  a: Frame;
  b: Frame;
}

interface Shaped {
  rows: Row[];
  /** Number of parts below LEAST_SHARE of their panel on both sides. */
  leftOut: number;
}

/** Fewer points than this give no useful spread. */
const FEWEST = 8;
/** Minimum share of the panel, on either side. */
const LEAST_SHARE = 0.01;
/** Rows that are marked as differing most. */
const MOST = 3;

/**
 * Returns the queries of a panel that can be filtered by workload. Their legends omit the workload, so that the
 * series of both sides have the same names.
 */
export function comparable(def: ChartDef): Query[] {
  return def.queries
    .filter((q) => q.expr.includes("$workloads"))
    .map((q) => ({ expr: q.expr, legend: withoutWorkload(q.legend) }));
}

/** The name of a series without another name: the workload's total. */
export const WHOLE = "total";

function withoutWorkload(legend: string): string {
  const rest = legend.replace(/\{\{workload\}\}:?/g, "").trim();
  return rest === "" ? WHOLE : rest;
}

/** Puts values of a frame on other times, each from the nearest point `offset` seconds earlier. */
export function align(times: readonly number[], frame: Frame, values: readonly (number | null)[], offset: number, step: number): (number | null)[] {
  const first = frame.times[0];
  if (first === undefined) return times.map(() => null);
  return times.map((time) => {
    const i = Math.round((time - offset - first) / step);
    return values[i] ?? null;
  });
}

/** Divides point by point. Without a divisor above zero there is no value. */
export function divide(values: readonly (number | null)[], by: readonly (number | null)[], scale: number): (number | null)[] {
  return values.map((value, i) => {
    const rate = by[i] ?? null;
    return value === null || rate === null || rate <= 0 ? null : (scale * value) / rate;
  });
}

interface Rates {
  divisor: Divisor;
  /** Values of A on its times, and of B on the same. */
  a: (number | null)[];
  b: (number | null)[];
}

/** Returns all rows, the most different first. All frames of A have the same times. */
export function shape(sides: readonly Sides[], offset: number, step: number, rates?: Rates): Shaped {
  let leftOut = 0;
  const rows = sides.flatMap(({ def, a, b }) => {
    const names = [...new Set([...a.series, ...b.series].map((s) => s.name))];
    const whole = { a: 0, b: 0 };
    const found = names.map((name) => {
      const values = { a: a.series.find((s) => s.name === name)?.values ?? [], b: b.series.find((s) => s.name === name)?.values ?? [] };
      const aligned = { a: a.times.map((_, i) => values.a[i] ?? null), b: align(a.times, b, values.b, offset, step) };
      const size = { a: sum(aligned.a), b: sum(aligned.b) };
      whole.a += size.a;
      whole.b += size.b;
      return { name, ...aligned, size };
    });
    const large = found.filter(({ size }) => !isAdditive(def.unit) || size.a > LEAST_SHARE * whole.a || size.b > LEAST_SHARE * whole.b);
    leftOut += found.length - large.length;
    return large.map((part) => row(def, part, part.name === WHOLE, rates));
  });
  return { rows: markMost(rows).sort(byDifference), leftOut };
}

function sum(values: readonly (number | null)[]): number {
  return values.reduce<number>((total, v) => total + Math.abs(v ?? 0), 0);
}

function row(def: ChartDef, part: { name: string; a: (number | null)[]; b: (number | null)[] }, whole: boolean, rates: Rates | undefined): Row {
  const unit = rates ? dividedUnit(def.unit) : undefined;
  const by = unit === undefined ? undefined : rates;
  const a = by ? divide(part.a, by.a, by.divisor.scale) : part.a;
  const b = by ? divide(part.b, by.b, by.divisor.scale) : part.b;
  const [spreadA, spreadB] = [spreadOf(a), spreadOf(b)];
  return {
    id: `${def.id}/${part.name}`,
    // Here "System calls by workload" has only one workload.
    title: whole ? def.title.replace(/ by workload$/, "") : `${def.title.replace(/ by \w+$/, "")}: ${part.name}`,
    unit: unit ?? def.unit,
    divided: by !== undefined,
    whole,
    a,
    b,
    spreadA,
    spreadB,
    ratio: ratioOf(spreadA, spreadB),
    verdict: judge(spreadA, spreadB),
  };
}

function judge(a: Spread | undefined, b: Spread | undefined): Verdict {
  const nothing = (s: Spread | undefined): boolean => s === undefined || s.q3 === 0;
  if (Math.max(a?.n ?? 0, b?.n ?? 0) < FEWEST) return "few";
  if (nothing(a) && nothing(b)) return "within";
  if (nothing(a)) return "only-b";
  if (nothing(b)) return "only-a";
  if (!a || !b || Math.min(a.n, b.n) < FEWEST) return "few";
  return areApart(a, b) ? "apart" : "within";
}

/** Returns how far a ratio is from one, in either direction. */
function distance({ ratio }: Row): number {
  return ratio && ratio.value > 0 ? Math.abs(Math.log(ratio.value)) : 0;
}

function markMost(rows: readonly Row[]): Row[] {
  // If some are divided, the others do not depend on the work that is the divisor.
  const divided = rows.some((r) => r.divided);
  const apart = rows.filter((r) => r.verdict === "apart" && r.divided === divided).sort((x, y) => distance(y) - distance(x));
  // Only the first of each panel is marked, because a whole and its parts say the same.
  const most = new Set(apart.filter((r, i) => apart.findIndex((other) => stem(other) === stem(r)) === i).slice(0, MOST).map((r) => r.id));
  return rows.map((r) => (most.has(r.id) ? { ...r, verdict: "most" } : r));
}

const stem = ({ title }: Row): string => title.split(":")[0] ?? "";

const ORDER: readonly Verdict[] = ["most", "apart", "only-b", "only-a", "within", "few"];

function byDifference(x: Row, y: Row): number {
  return ORDER.indexOf(x.verdict) - ORDER.indexOf(y.verdict) || distance(y) - distance(x) || x.id.localeCompare(y.id);
}

/** Formats a ratio: "×3.2", "×0.4". Three digits are enough for an estimate. */
export function formatRatio(value: number): string {
  if (!Number.isFinite(value)) return "∞";
  if (value >= 9.95) return `×${value.toFixed(0)}`;
  if (value >= 0.095) return `×${value.toFixed(value >= 0.995 ? 1 : 2)}`;
  return value === 0 ? "×0" : `×${value.toPrecision(1)}`;
}
