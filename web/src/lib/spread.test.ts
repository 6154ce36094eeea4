// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { areApart, quantile, ratioOf, spreadOf } from "./spread";

describe("a spread", () => {
  it("is median and quartiles of the values that are not null", () => {
    // R: quantile(c(1, 2, 3, 4, 10), c(.25, .5, .75), type = 7)
    expect(spreadOf([10, null, 1, 4, NaN, 2, 3])).toEqual({ n: 5, q1: 2, median: 3, q3: 4 });
    expect(spreadOf([1, 2])).toEqual({ n: 2, q1: 1.25, median: 1.5, q3: 1.75 });
    expect(spreadOf([null])).toBeUndefined();
    expect(quantile([7], 0.25)).toBe(7);
  });

  const a = { n: 9, q1: 8, median: 10, q3: 12 };
  const b = { n: 9, q1: 18, median: 20, q3: 24 };

  it("gives a ratio with what the quartiles leave open", () => {
    expect(ratioOf(a, b)).toEqual({ value: 2, low: 1.5, high: 3 });
    expect(ratioOf({ ...a, q1: 0 }, b)?.high).toBe(Infinity);
  });

  it("gives no ratio to zero", () => {
    expect(ratioOf({ n: 9, q1: 0, median: 0, q3: 1 }, b)).toBeUndefined();
    expect(ratioOf(undefined, b)).toBeUndefined();
    expect(ratioOf(a, undefined)).toBeUndefined();
  });

  it("is apart from another when the middle halves are", () => {
    expect([areApart(a, b), areApart(b, a), areApart(a, { ...b, q1: 12 })]).toEqual([true, true, false]);
  });
});
