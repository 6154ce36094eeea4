// SPDX-License-Identifier: Apache-2.0

// Box plots from rows. Pure.
import { onNode } from "../lib/promql";
import type { Unit } from "../lib/units";
import type { Row } from "./table-rows";
import type { BoxColumn } from "./types";

export interface Box {
  name: string;
  min: number;
  low: number;
  q1: number;
  median: number;
  q3: number;
  high: number;
  max: number;
  outliers: number | null;
  n: number | null;
}

/**
 * Returns the boxes by group, in descending order of medians. Where several machines are shown, names contain the
 * machine. Rows without quartiles are omitted.
 */
export function toBoxes(rows: readonly Row[], columns: readonly BoxColumn[], several = false): Map<string, Box[]> {
  const groups = new Map<string, Box[]>();
  for (const row of rows) {
    const number = (stat: BoxColumn["stat"]): number | null => row.cells[columns.findIndex((c) => c.stat === stat)]?.value ?? null;
    const [min, q1, median, q3, max] = [number("min"), number("q1"), number("median"), number("q3"), number("max")];
    const [group = "", workload = "", node] = row.keys;
    const name = onNode(workload, several ? node : undefined);
    if (min === null || q1 === null || median === null || q3 === null || max === null) continue;
    const low = number("whisker_low") ?? min;
    const high = number("whisker_high") ?? max;
    const box = { name, min, low, q1, median, q3, high, max, outliers: number("outliers"), n: number("n") };
    groups.set(group, [...(groups.get(group) ?? []), box]);
  }
  for (const boxes of groups.values()) {
    boxes.sort((a, b) => b.median - a.median || b.max - a.max || a.name.localeCompare(b.name));
  }
  return new Map([...groups].sort(([a], [b]) => a.localeCompare(b)));
}

/** Returns the unit of a metric from the end of its name. Counters are per second. */
export function metricUnit(name: string): Unit {
  if (name.endsWith("_bytes")) return "bytes";
  if (name.endsWith("cpu_seconds")) return "cores";
  return name.endsWith("_seconds") ? "seconds_per_second" : "per_second";
}

/** Formats the name of a metric as a title. */
export function metricTitle(name: string): string {
  const words = name.replace(/^(teescope|sgx|container|node)_/, "").replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export interface BoxScale {
  log: boolean;
  least: number;
  greatest: number;
}

/** Maximum number of decades of a logarithmic scale. Smaller values lie at its lower end. */
const MOST_DECADES = 6;

/** Returns the scale of boxes: logarithmic where the medians differ too much for a linear one. */
export function boxScale(boxes: readonly Box[], log?: boolean): BoxScale {
  const greatest = boxes.reduce((max, b) => Math.max(max, b.max), 0);
  const positive = boxes.flatMap((b) => [b.median, b.q1, b.low].filter((v) => v > 0));
  const medians = boxes.map((b) => b.median).filter((v) => v > 0);
  const wide = medians.length > 1 && Math.max(...medians) > 50 * Math.min(...medians);
  const least = Math.max(Math.min(greatest, ...positive), greatest / 10 ** MOST_DECADES);
  return (log ?? wide) && greatest > 0
    ? { log: true, least: 10 ** Math.floor(Math.log10(least)), greatest: Math.max(greatest, least * 1.01) }
    : { log: false, least: 0, greatest };
}

/** Returns the position of a value on a scale, 0 to 1. */
export function boxPlace(value: number, { log, least, greatest }: BoxScale): number {
  if (greatest <= 0) return 0;
  const share = log ? Math.log(Math.max(value, least) / least) / Math.log(greatest / least) : value / greatest;
  return Math.max(0, Math.min(1, share));
}

/** Returns the labelled values of a scale: decades or quarters. */
export function boxTicks({ log, least, greatest }: BoxScale): number[] {
  if (greatest <= 0) return [0];
  if (!log) return [0, 0.25, 0.5, 0.75, 1].map((share) => share * greatest);
  const decades = Math.floor(Math.log10(greatest / least) + 1e-9);
  const every = decades > 4 ? 2 : 1;
  return Array.from({ length: Math.floor(decades / every) + 1 }, (_, i) => least * 10 ** (i * every));
}
