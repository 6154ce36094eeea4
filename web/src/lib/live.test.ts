// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { parseDuration, tickSeconds } from "./live";

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

describe("tickSeconds", () => {
  it.each([
    ["a newborn agent", 100, 100, 101, 0.3],
    ["a young agent", 100, 100, 105, 1],
    ["a grown agent", 100, 100, 200, 5],
    ["an unknown agent, just opened", undefined, 100, 105, 1],
    ["an unknown agent, for long", undefined, 100, 200, 5],
  ])("%s", (_, startedAt, openedAt, now, want) => {
    expect(tickSeconds(startedAt, openedAt, now, 5)).toBe(want);
  });
});
