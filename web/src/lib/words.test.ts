// SPDX-License-Identifier: Apache-2.0
import { expect, it } from "vitest";
import { claimed, groupReasons, listFirst, listWords, stated } from "./words";

it.each([
  [[], ""],
  [["a"], "a"],
  [["a", "b"], "a and b"],
  [["a", "b", "c"], "a, b and c"],
])("lists %j", (words, want) => {
  expect(listWords(words)).toBe(want);
});

it.each([
  [["a", "b", "c"], "a, b and c"],
  [["a", "b", "c", "d"], "a, b and 2 more"],
])("lists the first two of %j", (words, want) => {
  expect(listFirst(words, 2)).toBe(want);
});

it("groups by reason", () => {
  const entries = [
    { name: "llc_references", reason: "no PMU" },
    { name: "sys_exit", reason: "" },
    { name: "llc_misses", reason: "no PMU" },
    { name: "llc_misses", reason: "no PMU" },
  ];
  expect(groupReasons(entries)).toBe("llc_misses and llc_references: no PMU; sys_exit: no reason given");
});

it("puts a reason last, so that it cannot pass for a proven name", () => {
  expect(stated(["mute", claimed("ann", true), ""], "a test")).toBe("mute · ann: a test");
  expect(stated(["mute", claimed("", false), ""], "x · ann")).toBe("mute: x · ann");
  expect(stated(["mute", claimed("ann", false)], "")).toBe("mute · ann (not verified)");
});
