// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { Frame } from "../../lib/series";
import { COMPARED } from "../../panels/compared";
import type { ChartDef } from "../../panels/types";
import { align, comparable, divide, formatRatio, shape, type Sides, WHOLE } from "./shape";

const STEP = 10;
const times = (from: number, n: number): number[] => Array.from({ length: n }, (_, i) => from + i * STEP);

function def(id: string, more: Partial<ChartDef> = {}): ChartDef {
  return { id, kind: "lines", title: `${id} by workload`, question: "?", unit: "per_second", help: "", empty: { text: "" }, queries: [], ...more };
}

/** Returns frames of ten points each. B begins `later` seconds after A. */
function sides(of: ChartDef, a: Record<string, number>, b: Record<string, number>, later = 0): Sides {
  const frame = (from: number, values: Record<string, number>): Frame => ({
    times: times(from, 10),
    // A little spread: 0.9 to 1.1 of the value.
    series: Object.entries(values).map(([name, v]) => ({ name, values: times(0, 10).map((_, i) => v * (0.9 + (0.2 * i) / 9)) })),
  });
  return { def: of, a: frame(1000, a), b: frame(1000 + later, b) };
}

describe("comparable", () => {
  it("takes the queries that know the workload, and names series without it", () => {
    const queries = [
      { expr: "x{$workloads}", legend: "{{workload}}" },
      { expr: "y{$workloads}", legend: "{{workload}}: working set" },
      { expr: "machine", legend: "free" },
    ];
    expect(comparable(def("d", { queries })).map((q) => q.legend)).toEqual([WHOLE, "working set"]);
  });

  it("finds panels to compare, all with such a query", () => {
    expect(COMPARED.length).toBeGreaterThan(8);
    for (const one of COMPARED) expect(comparable(one).length, one.id).toBeGreaterThan(0);
  });
});

describe("align", () => {
  const frame: Frame = { times: times(400, 4), series: [] };

  it("puts values of an earlier time on the later one", () => {
    expect(align(times(1000, 5), frame, [1, 2, null, 4], 600, STEP)).toEqual([1, 2, null, 4, null]);
  });

  it("takes the nearest point where the grids do not meet", () => {
    expect(align([1003, 1013], frame, [1, 2, 3, 4], 600, STEP)).toEqual([1, 2]);
    expect(align([1007], frame, [1, 2, 3, 4], 600, STEP)).toEqual([2]);
  });

  it("has no value where a side has none", () => {
    expect(align([990, 1000], frame, [1, 2], 600, STEP)).toEqual([null, 1]);
    expect(align([1000], { times: [], series: [] }, [], 0, STEP)).toEqual([null]);
  });
});

describe("divide", () => {
  it("divides point by point, and not by zero", () => {
    expect(divide([10, 10, null, 10, 10], [2, 0, 2, null], 100)).toEqual([500, null, null, null, null]);
  });
});

describe("shape", () => {
  it("gives ratios of medians, and marks the greatest difference", () => {
    const { rows } = shape([sides(def("calls"), { [WHOLE]: 100 }, { [WHOLE]: 300 }), sides(def("faults"), { [WHOLE]: 50 }, { [WHOLE]: 51 })], 0, STEP);
    expect(rows.map((r) => [r.title, r.verdict])).toEqual([["calls", "most"], ["faults", "within"]]);
    expect(rows[0]?.ratio?.value).toBeCloseTo(3, 9);
    expect(rows[0]?.spreadA).toMatchObject({ n: 10 });
  });

  it("reads B at an earlier time", () => {
    const { rows } = shape([sides(def("calls"), { [WHOLE]: 100 }, { [WHOLE]: 200 }, -600)], 600, STEP);
    expect(rows[0]?.b).toHaveLength(10);
    expect(rows[0]?.b[0]).toBeCloseTo(180, 9);
  });

  it("divides rates and leaves levels, which then are not what differs most", () => {
    const given = [
      sides(def("cpu", { unit: "cores" }), { [WHOLE]: 1 }, { [WHOLE]: 2 }),
      sides(def("memory", { unit: "bytes" }), { [WHOLE]: 10 }, { [WHOLE]: 1000 }),
    ];
    const values = (v: number): number[] => Array.from({ length: 10 }, () => v);
    const { rows } = shape(given, 0, STEP, { divisor: { expr: "", scale: 100, noun: "100 reads" }, a: values(50), b: values(50) });
    const [cpu, memory] = ["cpu", "memory"].map((title) => rows.find((r) => r.title === title));
    expect(cpu).toMatchObject({ unit: "seconds", divided: true, verdict: "most" });
    expect(cpu?.spreadA?.median).toBeCloseTo(2, 9);
    expect(memory).toMatchObject({ unit: "bytes", divided: false, verdict: "apart" });
  });

  it("has no value where the divisor has none", () => {
    const none = Array.from({ length: 10 }, () => 0);
    const { rows } = shape([sides(def("calls"), { [WHOLE]: 1 }, { [WHOLE]: 2 })], 0, STEP, { divisor: { expr: "", scale: 1, noun: "" }, a: none, b: none });
    expect(rows[0]).toMatchObject({ spreadA: undefined, ratio: undefined, verdict: "few" });
  });

  it("marks what only one side has, without a ratio", () => {
    const parts = def("calls", { title: "Calls by name" });
    const { rows, leftOut } = shape([sides(parts, { read: 100, futex: 50, rare: 0.1 }, { read: 100, clock: 80 })], 0, STEP);
    expect(rows.map((r) => [r.title, r.verdict])).toEqual([
      ["Calls: clock", "only-b"],
      ["Calls: futex", "only-a"],
      ["Calls: read", "within"],
    ]);
    expect(rows[0]?.ratio).toBeUndefined();
    expect(leftOut).toBe(1); // less than 1 % of all calls on both sides
  });

  it("gives no verdict on a few points", () => {
    const few = sides(def("calls"), { [WHOLE]: 1 }, { [WHOLE]: 9 });
    for (const frame of [few.a, few.b]) for (const s of frame.series) s.values.fill(null, 3);
    expect(shape([few], 0, STEP).rows[0]?.verdict).toBe("few");
  });

  it("marks one of a panel's whole and parts, and three at most", () => {
    const given = ["a", "b", "c", "d"].map((id, i) => sides(def(id, { title: `${id.toUpperCase()} by kind` }), { x: 10, y: 10 }, { x: 100 + i, y: 90 }));
    const most = shape(given, 0, STEP).rows.filter((r) => r.verdict === "most");
    expect(most.map((r) => r.title)).toEqual(["D: x", "C: x", "B: x"]);
  });
});

it.each([[3.24, "×3.2"], [1, "×1.0"], [0.4, "×0.40"], [12.7, "×13"], [0.004, "×0.004"], [0, "×0"], [Infinity, "∞"]])("writes the ratio %d as %s", (value, want) => {
  expect(formatRatio(value)).toBe(want);
});
