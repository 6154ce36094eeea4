// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { bandOf, extendFrame, fold, type Frame, lastValue, splitErrors, stack, toFrame } from "./series";

const frame = (times: number[], series: Record<string, (number | null)[]>): Frame => ({
  times,
  series: Object.entries(series).map(([name, values]) => ({ name, values })),
});

describe("toFrame", () => {
  it("leaves a gap where there is no point", () => {
    const got = toFrame([{ name: "a", points: [[10, 1], [20, 3]] }], 10, 25, 5);
    expect(got).toEqual(frame([10, 15, 20, 25], { a: [1, null, 3, null] }));
  });

  it("adds up series of one name and leaves out what is not finite", () => {
    const raw = [
      { name: "a", points: [[10, 1], [15, NaN]] as const },
      { name: "a", points: [[10, 2]] as const },
    ];
    expect(toFrame(raw, 10, 15, 5)).toEqual(frame([10, 15], { a: [3, null] }));
  });

  it("knows the empty answer", () => {
    expect(toFrame([], 0, 5, 5).series).toEqual([]);
  });
});

describe("extendFrame", () => {
  const old = frame([10, 15, 20], { a: [1, 2, 3], gone: [9, null, null] });

  it("replaces what the newer frame covers and drops what is too old", () => {
    const got = extendFrame(old, frame([20, 25], { a: [30, 4], b: [null, 7] }), 15);
    expect(got).toEqual(frame([15, 20, 25], { a: [2, 30, 4], b: [null, null, 7] }));
  });

  it("keeps a series that ended while it is in sight", () => {
    const got = extendFrame(old, frame([25], { a: [4] }), 10);
    expect(got.series.find((s) => s.name === "gone")?.values).toEqual([9, null, null, null]);
  });
});

describe("fold", () => {
  const wide = frame([1, 2], { a: [1, 1], b: [50, 50], c: [2, null], d: [3, 3], e: [null, null] });

  it("keeps the heaviest and adds up the rest", () => {
    const got = fold(wide, 2);
    expect(got.count).toBe(3);
    expect(got.frame.series.map((s) => s.name)).toEqual(["b", "d", "the rest (3)"]);
    expect(got.frame.series[2]?.values).toEqual([3, 1]);
  });

  it("keeps the total", () => {
    const total = (f: Frame): number => f.series.reduce((sum, s) => sum + s.values.reduce<number>((x, v) => x + (v ?? 0), 0), 0);
    for (const top of [1, 2, 3, 4, 9]) expect(total(fold(wide, top).frame)).toBe(total(wide));
  });

  it("leaves out what cannot be added", () => {
    const got = fold(wide, 2, false);
    expect(got.count).toBe(3);
    expect(got.frame.series.map((s) => s.name)).toEqual(["b", "d"]);
  });

  it("does not fold a single series, which keeps its own name", () => {
    expect(fold(wide, 4)).toMatchObject({ count: 0 });
  });
});

describe("stack", () => {
  it("adds upwards, and a gap of all stays a gap", () => {
    expect(stack(frame([1, 2, 3], { a: [1, null, 5], b: [2, null, null] }))).toEqual([
      [1, null, 5],
      [3, null, 5],
    ]);
  });
});

describe("lastValue", () => {
  it.each([
    [[1, 2, null], 2],
    [[null], null],
    [[], null],
    [[3, 0], 0],
  ])("of %j is %j", (values, want) => {
    expect(lastValue(values)).toBe(want);
  });
});

describe("errors", () => {
  const { frame: values, errors } = splitErrors(frame([1, 2, 3], { a: [10, 20, null], "± a": [2, null, 3], b: [1, 1, 1], "± b": [0, 0, 0], c: [1, 5, 9], "± c": [4, 4, 4] }), "± ");

  it("are separated from the series that they belong to", () => {
    expect(values.series.map((s) => s.name)).toEqual(["a", "b", "c"]);
    expect([...errors.keys()]).toEqual(["a", "b", "c"]);
  });

  it("make a band where both are known, which does not go below zero", () => {
    const [a, b, c] = values.series.map((s) => bandOf(s, errors));
    expect(a).toEqual([[8, 12], null, null]);
    expect(b).toBeUndefined();
    expect(c).toEqual([
      [0, 5],
      [1, 9],
      [5, 13],
    ]);
  });
});
