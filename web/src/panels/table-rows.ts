// SPDX-License-Identifier: Apache-2.0

// Joins the answers of a table's columns into rows, and sorts them. Pure.
import type { InstantSample, Labels } from "../api/types";
import { fillLegend } from "../lib/promql";

export interface Cell {
  value: number | null;
  past?: readonly (number | null)[];
}

export interface Row {
  key: string;
  /** Values of the key labels. The first may be formatted from other labels. */
  keys: readonly string[];
  /** Values of the info labels. */
  infos: readonly string[];
  cells: readonly Cell[];
}

const SEPARATOR = "\u0000";

/** Identifies a row by the values of its key labels. */
export function rowKey(labels: Labels, keys: readonly string[]): string {
  return keys.map((label) => labels[label] ?? "").join(SEPARATOR);
}

/** Returns the same identity as a legend template, so that series can be joined by name. */
export function rowLegend(keys: readonly string[]): string {
  return keys.map((label) => `{{${label}}}`).join(SEPARATOR);
}

/** One column: cells by row. */
export type ColumnData = ReadonlyMap<string, Cell>;

export function buildRows(
  keys: readonly string[],
  infoLabels: readonly string[],
  info: readonly InstantSample[],
  columns: readonly ColumnData[],
  name?: string,
): Row[] {
  const infos = new Map(info.map((s) => [rowKey(s.metric, keys), s.metric]));
  const all = new Set([...infos.keys(), ...columns.flatMap((column) => [...column.keys()])]);
  return [...all].map((key) => {
    const labels = infos.get(key);
    const [first = "", ...others] = key.split(SEPARATOR);
    return {
      key,
      keys: [name !== undefined && labels ? fillLegend(name, labels) : first, ...others],
      infos: infoLabels.map((label) => labels?.[label] ?? ""),
      cells: columns.map((column) => column.get(key) ?? { value: null }),
    };
  });
}

export interface Sorting {
  /** Index over keys, infos and cells, in this order. */
  column: number;
  descending: boolean;
}

/** Sorts rows. Missing values come last in either direction; equal values are sorted by name. */
export function sortRows(rows: readonly Row[], sorting: Sorting): Row[] {
  const pick = (row: Row): string | number | null => {
    const { keys, infos, cells } = row;
    const { column } = sorting;
    if (column < keys.length) return keys[column] ?? null;
    if (column < keys.length + infos.length) return infos[column - keys.length] ?? null;
    return cells[column - keys.length - infos.length]?.value ?? null;
  };
  const direction = sorting.descending ? -1 : 1;
  return [...rows].sort((a, b) => {
    const x = pick(a);
    const y = pick(b);
    if (x === null || y === null) return x === y ? a.key.localeCompare(b.key) : x === null ? 1 : -1;
    const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
    return order === 0 ? a.key.localeCompare(b.key) : direction * order;
  });
}

/**
 * Parses the sorting from the title of a column, with a "-" before it for descending order. An unknown column gives
 * undefined.
 */
export function parseSorting(text: string | undefined, titles: readonly string[]): Sorting | undefined {
  if (text === undefined) return undefined;
  const descending = text.startsWith("-");
  const column = titles.indexOf(descending ? text.slice(1) : text);
  return column < 0 ? undefined : { column, descending };
}

export function formatSorting({ column, descending }: Sorting, titles: readonly string[]): string {
  return (descending ? "-" : "") + (titles[column] ?? "");
}

/** Puts the chosen rows first. Otherwise the order stays. */
export function pinRows(rows: readonly Row[], isChosen: (row: Row) => boolean): Row[] {
  return [...rows.filter(isChosen), ...rows.filter((row) => !isChosen(row))];
}
