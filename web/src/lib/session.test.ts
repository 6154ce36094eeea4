// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { agentAge, shownInterval } from "./session";

describe("the age of the agent", () => {
  it.each<[string, number | undefined, number, number | undefined]>([
    ["is what it had counted at the end", 1000, 1090, 90],
    ["is nothing where the browser's clock is behind", 1000, 990, 0],
    ["is not known of a time before a restart", 1000, 100, undefined],
    ["is not known before it was asked for", undefined, 100, undefined],
  ])("%s", (_, startedAt, end, want) => {
    expect(agentAge({ scrapeInterval: 5, startedAt }, end)).toBe(want);
  });
});

it.each([
  ["a relative range ends now", { range: "5m" }, { from: 700, to: 1000 }],
  ["an absolute one where it says", { range: "5m", fixed: { from: 100, to: 900 } }, { from: 100, to: 900 }],
  ["and now where it goes on", { range: "5m", fixed: { from: 100, to: 5000 } }, { from: 100, to: 1000 }],
  ["one that is to come stays, and is empty", { range: "5m", fixed: { from: 2000, to: 5000 } }, { from: 2000, to: 5000 }],
])("%s", (_, view, want) => {
  expect(shownInterval(view, 1000)).toEqual(want);
});
