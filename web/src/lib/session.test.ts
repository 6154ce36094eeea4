// SPDX-License-Identifier: Apache-2.0
import { expect, it } from "vitest";
import { shownInterval } from "./session";

it.each([
  ["a relative range ends now", { range: "5m" }, { from: 700, to: 1000 }],
  ["an absolute one where it says", { range: "5m", fixed: { from: 100, to: 900 } }, { from: 100, to: 900 }],
  ["and now where it goes on", { range: "5m", fixed: { from: 100, to: 5000 } }, { from: 100, to: 1000 }],
  ["one that is to come stays, and is empty", { range: "5m", fixed: { from: 2000, to: 5000 } }, { from: 2000, to: 5000 }],
])("%s", (_, view, want) => {
  expect(shownInterval(view, 1000)).toEqual(want);
});
