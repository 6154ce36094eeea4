// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { buildRows, formatSorting, parseSorting, pinRows, rowKey, rowLegend, sortRows } from "./table-rows";
import { fillLegend } from "../lib/promql";

const info = [
  { metric: { workload: "redis", kind: "program" }, value: [0, 1] as [number, number] },
  { metric: { workload: "nginx", kind: "unit" }, value: [0, 1] as [number, number] },
];
const cpu = new Map([["redis", { value: 0.5 }], ["cron", { value: 0.1 }]]);
const rows = buildRows(["workload"], ["kind"], info, [cpu]);
const order = (column: number, descending: boolean): string[] =>
  sortRows(rows, { column, descending }).map((row) => row.key);

describe("buildRows", () => {
  it("joins info and columns, and keeps what only one of them knows", () => {
    expect(rows).toEqual([
      { key: "redis", keys: ["redis"], infos: ["program"], cells: [{ value: 0.5 }] },
      { key: "nginx", keys: ["nginx"], infos: ["unit"], cells: [{ value: null }] },
      { key: "cron", keys: ["cron"], infos: [""], cells: [{ value: 0.1 }] },
    ]);
  });

  it("writes the name of a row from its info", () => {
    const named = buildRows(["workload"], [], info, [cpu], "{{missing}}|{{workload}} ({{kind}})");
    expect(named.map((row) => row.keys[0])).toEqual(["redis (program)", "nginx (unit)", "cron"]);
  });

  it("gives series and samples of several labels the same identity", () => {
    const labels = { probe: "sys_enter", instance: "a:1" };
    const keys = ["probe", "instance"];
    expect(fillLegend(rowLegend(keys), labels)).toBe(rowKey(labels, keys));
  });
});

describe("sortRows", () => {
  it.each([
    ["by name", 0, false, ["cron", "nginx", "redis"]],
    ["by info", 1, true, ["nginx", "redis", "cron"]],
    ["by value, absent last", 2, true, ["redis", "cron", "nginx"]],
    ["by value upwards, absent still last", 2, false, ["cron", "redis", "nginx"]],
  ])("%s", (_, column, descending, want) => {
    expect(order(column, descending)).toEqual(want);
  });
});

it.each([
  ["-CPU", { column: 1, descending: true }],
  ["Name", { column: 0, descending: false }],
  ["-odd", { column: 2, descending: true }],
])("reads that it is sorted by %s, and writes it again", (text, want) => {
  const titles = ["Name", "CPU", "odd"];
  expect(parseSorting(text, titles)).toEqual(want);
  expect(formatSorting(want, titles)).toBe(text);
});

it.each([undefined, "", "-", "Gone", "--CPU"])("does not sort by an unknown column: %s", (text) => {
  expect(parseSorting(text, ["Name", "CPU"])).toBeUndefined();
});

it("pins what is chosen, in the order of the rest", () => {
  expect(pinRows(rows, (row) => ["cron", "nginx"].includes(row.key)).map((row) => row.key)).toEqual(["nginx", "cron", "redis"]);
});
