// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { alignToGrid, formatSpan, formatUrlTime, parseTime, RANGES, stepFor } from "./time";

describe("stepFor", () => {
  it.each([
    [60, 5, 240, 5], // never below the scrape interval
    [300, 5, 240, 5],
    [3600, 5, 240, 15],
    [604_800, 5, 240, 3600],
    [300, 1, 240, 2],
    [300, 7, 240, 10], // a round number at or above an odd interval
    [400 * 86_400, 5, 240, 172_800], // beyond the list: whole days
  ])("%d s scraped every %d s in %d points is %d s", (seconds, scrape, points, want) => {
    expect(stepFor(seconds, scrape, points)).toBe(want);
  });

  it("never gives more points than wanted", () => {
    for (const { seconds } of RANGES) expect(seconds / stepFor(seconds, 1, 240)).toBeLessThanOrEqual(240);
  });
});

describe("alignToGrid", () => {
  it("covers the interval with whole steps", () => {
    expect(alignToGrid({ from: 101, to: 399 }, 5)).toEqual({ from: 100, to: 400 });
  });

  it("leaves an aligned interval alone", () => {
    expect(alignToGrid({ from: 100, to: 400 }, 5)).toEqual({ from: 100, to: 400 });
  });
});

describe("times of the URL", () => {
  it.each([
    ["1800000000", 1_800_000_000],
    ["1800000000.5", 1_800_000_000.5],
    ["2027-01-15T08:00:00Z", 1_800_000_000],
  ])("reads %s", (text, want) => {
    expect(parseTime(text)).toBe(want);
  });

  it.each(["", "yesterday", "12", "2027", "2027-13-45T00:00:00Z"])("refuses %j", (text) => {
    expect(parseTime(text)).toBeUndefined();
  });

  it("writes what it reads", () => {
    expect(parseTime(formatUrlTime(1_800_000_123))).toBe(1_800_000_123);
  });
});

describe("formatSpan", () => {
  it.each([
    [5, "5 s"],
    [300, "5 min"],
    [7200, "2 h"],
    [604_800, "7 d"],
  ])("%d s is %s", (seconds, want) => {
    expect(formatSpan(seconds)).toBe(want);
  });
});
