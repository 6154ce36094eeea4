// SPDX-License-Identifier: Apache-2.0
import { afterEach, describe, expect, it } from "vitest";
import {
  alignToGrid, findRange, formatClock, formatInputTime, formatMoment, formatSpan, formatUrlTime, parseDuration, parseInputTime, parseTime,
  rangeProblem, RANGES, setZone, stepFor, zoned, zoneName,
} from "./time";

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

  it("does not change an aligned interval", () => {
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

describe("parseDuration", () => {
  it.each([
    ["5s", 5],
    ["1m30s", 90],
    ["500ms", 0.5],
    ["1d", 86_400],
  ])("%s", (text, want) => {
    expect(parseDuration(text)).toBe(want);
  });

  it.each(["", "5", "s", "0s", "five"])("refuses %j", (text) => {
    expect(parseDuration(text)).toBeUndefined();
  });
});

describe("a typed range", () => {
  it.each([
    ["5m", 300, "Last 5 min"],
    ["90m", 5400, "Last 90 min"],
    ["2d", 172_800, "Last 2 d"],
    ["1h30m", 5400, "Last 1 h 30 min"],
    ["1w", 604_800, "Last 1 w"],
  ])("%s is %d s", (id, seconds, label) => {
    expect(findRange(id)).toMatchObject({ id, seconds, label });
  });

  it.each(["", "90", "m", "5 m", "1.5h", "9s", "367d", "-5m", "5M"])("%j is none", (text) => {
    expect(rangeProblem(text)).toMatch(/\.$/);
    expect(findRange(text)).toBeUndefined();
  });
});

describe("the zone", () => {
  const before = process.env["TZ"];
  afterEach(() => {
    setZone("local");
    process.env["TZ"] = before;
  });
  const at = 1_800_000_000; // 2027-01-15T08:00:00Z

  it.each([
    ["Asia/Kolkata", "UTC+5:30", "15 Jan 13:30:00"],
    ["America/St_Johns", "UTC-3:30", "15 Jan 04:30:00"],
    ["Pacific/Kiritimati", "UTC+14", "15 Jan 22:00:00"],
    ["UTC", "UTC", "15 Jan 08:00:00"],
  ])("is that of the browser, %s, or UTC", (zone, name, local) => {
    process.env["TZ"] = zone;
    expect([zoneName(at), formatMoment(at)]).toEqual([name, local]);
    expect(parseInputTime(formatInputTime(at))).toBe(at);
    setZone("utc");
    expect([zoneName(at), formatMoment(at), formatClock(at)]).toEqual(["UTC", "15 Jan 08:00:00", "08:00:00"]);
    expect(zoneName(at, "local")).toBe(name);
    expect(formatInputTime(at)).toBe("2027-01-15T08:00:00");
    expect(parseInputTime("2027-01-15T08:00")).toBe(at);
    expect([zoned(at).getDate(), zoned(at).getHours()]).toEqual([15, 8]);
  });
});
