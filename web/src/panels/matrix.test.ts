// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { toMatrix } from "./matrix";

const pair = (row: string, column: string, value: number) => ({ row, column, value });

describe("a matrix", () => {
  it("sorts rows and columns in descending order, with 0 for missing pairs", () => {
    const made = toMatrix([pair("kv", "paging", 3), pair("paging", "paging", 150), pair("paging", "kv", 8), pair("idle", "kv", 0)], 12);
    expect(made).toEqual({ rows: ["paging", "kv"], columns: ["paging", "kv"], cells: [[150, 8], [3, 0]], greatest: 150 });
  });

  it("is limited, and keeps the total", () => {
    const pairs = Array.from({ length: 128 }, (_, i) => Array.from({ length: 128 }, (__, k) => pair(`a${i}`, `b${k}`, 1 + i + k))).flat();
    const made = toMatrix(pairs, 12);
    expect([made.rows.length, made.columns.length]).toEqual([13, 13]);
    expect(made.rows.at(-1)).toBe("the rest (116)");
    expect(made.cells.flat().reduce((a, b) => a + b, 0)).toBe(pairs.reduce((sum, p) => sum + p.value, 0));
  });

  it("is empty without pairs", () => {
    expect(toMatrix([], 12)).toEqual({ rows: [], columns: [], cells: [], greatest: 0 });
  });
});
