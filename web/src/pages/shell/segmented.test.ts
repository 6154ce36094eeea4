// SPDX-License-Identifier: Apache-2.0
import { expect, it } from "vitest";
import { nextOption } from "./Segmented";

it.each([
  [0, "ArrowRight", 1],
  [2, "ArrowRight", 0],
  [0, "ArrowLeft", 2],
  [1, "ArrowUp", 0],
  [1, "ArrowDown", 2],
  [1, "Home", 0],
  [0, "End", 2],
  [0, "a", undefined],
])("from %d of three %s goes to %s", (at, key, want) => {
  expect(nextOption(at, 3, key)).toBe(want);
});
