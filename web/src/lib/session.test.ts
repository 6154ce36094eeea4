// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { agentAge } from "./session";

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
