// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { tickSeconds } from "./live";

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
