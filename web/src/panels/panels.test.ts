// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { arcPath, arcPoint } from "./charts/Arc";
import { cellText, moveCell } from "./charts/Heat";
import { cellAt, heatBox, heatColour, labelEvery, timeDistance } from "./charts/heat-draw";
import { moveCursor } from "./charts/Plot";
import { logRange, mix, raiseToFoot, runs, timeLabels, valueRange, isLonely } from "./charts/uplot";
import { levelOf } from "./GaugePanel";
import { sparkPath } from "./charts/Spark";
import { foldBars } from "./BarsPanel";
import { explainProbes } from "./empty-reason";

describe("foldBars", () => {
  it("sorts, folds, and drops zero values", () => {
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

  it("is empty without values, and a straight line for zeros", () => {
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

  it("is empty when all probes are attached", () => {
    expect(explainProbes([probe("sys_enter", "", 1)])).toBeUndefined();
  });
});

describe("the logarithmic scale", () => {
  it("spans whole decades around what is above zero, six at most", () => {
    expect(logRange([[3, null, 0], [250]])).toEqual([1, 1000]);
    expect(logRange([[1e-9, 5e3]])).toEqual([0.01, 10_000]);
    expect(logRange([[0, null]])).toEqual([0.1, 1]);
  });

  it("lays zero at its foot and leaves gaps", () => {
    expect(raiseToFoot([0, null, 5], 0.1)).toEqual([0.1, null, 5]);
  });
});

it("arrow keys move the cursor of a chart", () => {
  expect(["ArrowLeft", "ArrowRight", "Home", "End", "x"].map((key) => moveCursor(5, key, 10))).toEqual([4, 6, 0, 9, undefined]);
  expect([moveCursor(undefined, "ArrowLeft", 10), moveCursor(9, "ArrowRight", 10), moveCursor(0, "ArrowLeft", 0)]).toEqual([9, 9, undefined]);
});

describe("a heat map", () => {
  const buckets = { times: [10, 20], bounds: [0.001, 0.002], cells: [[1, null], [3, 0]] };
  const picture = { buckets, allBounds: [0.001, 0.002], step: 10, interval: { from: 0, to: 20 }, unit: "seconds" as const, marks: [], hover: undefined };

  it("finds the cell at a point", () => {
    const box = heatBox(280, 138);
    expect(cellAt(box.left + 1, box.top + 1, box, picture)).toEqual({ row: 1, column: 0 });
    expect(cellAt(box.left + box.width - 1, box.top + box.height - 1, box, picture)).toEqual({ row: 0, column: 1 });
    expect(cellAt(1, 1, box, picture)).toBeUndefined();
  });

  it("describes a cell in words, also one without a measurement", () => {
    expect(cellText(buckets, buckets.bounds, { row: 1, column: 0 }, "seconds")).toMatch(/, 1 ms to 2 ms: 3\/s, 75 % of that moment$/);
    expect(cellText(buckets, buckets.bounds, { row: 0, column: 1 }, "seconds")).toMatch(/, up to 1 ms: not measured$/);
  });

  it("moves by arrow keys within its edges", () => {
    expect(moveCell(undefined, "ArrowLeft", 4, 10)).toEqual({ row: 2, column: 9 });
    expect(moveCell({ row: 3, column: 0 }, "ArrowUp", 4, 10)).toEqual({ row: 3, column: 0 });
    expect(moveCell({ row: 3, column: 0 }, "Tab", 4, 10)).toBeUndefined();
  });

  it("mixes its colours and spaces its labels", () => {
    expect([0, 0.5, 1, 2].map((share) => heatColour(share, ["#000000", "#fff"]))).toEqual(["rgb(0,0,0)", "rgb(128,128,128)", "rgb(255,255,255)", "rgb(255,255,255)"]);
    expect([labelEvery(5, 130), labelEvery(20, 130)]).toEqual([1, 3]);
    expect(timeDistance(300, 600)).toBe(30);
  });
});

describe("a gauge", () => {
  const thresholds = [{ at: 0.8, level: "warn" as const }, { at: 0.95, level: "bad" as const }];

  it("returns the worst level that was reached", () => {
    expect([0.5, 0.8, 0.949, 0.95, 1.2].map((share) => levelOf(share, thresholds))).toEqual([undefined, "warn", "warn", "bad", "bad"]);
  });

  it("fills from left to right and never over its end", () => {
    expect(arcPoint(0.5).x).toBeCloseTo(90);
    expect(arcPoint(0.5).y).toBeCloseTo(14);
    expect(arcPath(2)).toBe(arcPath(1));
  });
});

describe("the band of estimates", () => {
  it("is interrupted where there is no interval", () => {
    const point: [number, number] = [1, 2];
    expect(runs([null, point, point, null, point])).toEqual([
      [1, 3],
      [4, 5],
    ]);
    expect(runs([])).toEqual([]);
  });
});
