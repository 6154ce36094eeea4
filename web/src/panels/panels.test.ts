// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { mix, timeLabels, valueRange, isLonely } from "./charts/uplot";
import { sparkPath } from "./charts/Spark";
import { foldBars } from "./BarsPanel";
import { explainProbes } from "./empty-reason";

describe("foldBars", () => {
  it("sorts, folds, and drops what is nothing", () => {
    const bars = [1, 5, 0, 3, 2].map((value, i) => ({ name: `s${i}`, value }));
    expect(foldBars(bars, 2)).toEqual([
      { name: "s1", value: 5 },
      { name: "s3", value: 3 },
      { name: "the rest (2)", value: 3 },
    ]);
  });
});

describe("sparkPath", () => {
  it("lifts the pen at a gap and dots a lone point", () => {
    expect(sparkPath([2, 1, null, 2], 30, 12)).toBe("M0.0 1.0L10.0 6.0M30.0 1.0h.1");
  });

  it("draws nothing of nothing and a floor of zeros", () => {
    expect(sparkPath([], 30, 12)).toBe("");
    expect(sparkPath([0, 0], 30, 12)).toBe("M0.0 11.0L30.0 11.0");
  });
});

describe("the axes", () => {
  it("begin at zero with air above", () => {
    expect(valueRange(100, "count")).toEqual([0, 112.00000000000001]);
    expect(valueRange(0.95, "ratio")).toEqual([0, 1]);
    expect(valueRange(null, "count")).toEqual([0, 1]);
  });

  it("label no finer than their distance", () => {
    const noon = new Date(2026, 10, 20, 12, 0, 0).getTime() / 1000;
    expect(timeLabels([noon, noon + 30], 30)).toEqual(["12:00:00", "12:00:30"]);
    expect(timeLabels([noon, noon + 60], 60)).toEqual(["12:00", "12:01"]);
    expect(timeLabels([noon + 43_200], 86_400)).toEqual(["21 Nov"]);
  });

  it("knows a point without neighbours", () => {
    expect([0, 1, 2, 3, 4].filter((i) => isLonely([1, null, 2, 3, null], i))).toEqual([0]);
  });
});

describe("mix", () => {
  it.each([
    ["#ff0000", "#ffffff", 1, "rgb(255,0,0)"],
    ["#ff0000", "#fff", 0, "rgb(255,255,255)"],
    ["#000", "#ffffff", 0.5, "rgb(128,128,128)"],
  ])("of %s over %s", (colour, ground, share, want) => {
    expect(mix(colour, ground, share)).toBe(want);
  });
});

describe("explainProbes", () => {
  const probe = (name: string, reason: string, value: number): Parameters<typeof explainProbes>[0][number] => ({
    metric: { probe: name, reason },
    value: [0, value],
  });

  it("gives the reasons of those that are not attached", () => {
    expect(explainProbes([probe("llc_misses", "no PMU", 0), probe("sys_enter", "", 1)])).toBe(
      "Not attached: llc_misses: no PMU.",
    );
  });

  it("has nothing to say when all are", () => {
    expect(explainProbes([probe("sys_enter", "", 1)])).toBeUndefined();
  });
});
