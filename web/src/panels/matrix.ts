// SPDX-License-Identifier: Apache-2.0

// Rows, columns and cells of the kind "matrix" from pairs. Pure.
import { restName } from "../lib/series";

interface Pair {
  row: string;
  column: string;
  value: number;
}

interface Matrix {
  rows: string[];
  columns: string[];
  /** By row and column; a missing pair is 0. */
  cells: number[][];
  greatest: number;
}

/** Sorts names by their sums in descending order. Names beyond `most` are folded. */
function order(pairs: readonly Pair[], side: "row" | "column", most: number): { names: string[]; name: (of: string) => string } {
  const sums = new Map<string, number>();
  for (const pair of pairs) sums.set(pair[side], (sums.get(pair[side]) ?? 0) + pair.value);
  const sorted = [...sums].sort(([a, x], [b, y]) => y - x || a.localeCompare(b)).map(([name]) => name);
  if (sorted.length <= most + 1) return { names: sorted, name: (of) => of };
  const shown = sorted.slice(0, most);
  const rest = restName(sorted.length - most);
  const known = new Set(shown);
  return { names: [...shown, rest], name: (of) => (known.has(of) ? of : rest) };
}

/** Converts pairs into a matrix of at most `most` rows and columns, each with one more for the folded ones. */
export function toMatrix(pairs: readonly Pair[], most: number): Matrix {
  const there = pairs.filter((p) => p.value > 0);
  const rows = order(there, "row", most);
  const columns = order(there, "column", most);
  const at = (names: readonly string[]): Map<string, number> => new Map(names.map((name, i) => [name, i]));
  const [rowAt, columnAt] = [at(rows.names), at(columns.names)];
  const cells = rows.names.map(() => columns.names.map(() => 0));
  for (const { row, column, value } of there) {
    const line = cells[rowAt.get(rows.name(row)) ?? 0];
    const i = columnAt.get(columns.name(column)) ?? 0;
    if (line) line[i] = (line[i] ?? 0) + value;
  }
  return { rows: rows.names, columns: columns.names, cells, greatest: Math.max(0, ...cells.flat()) };
}
