// SPDX-License-Identifier: Apache-2.0
import { expect, it } from "vitest";
import { createStore } from "./store";

it("notifies watchers of changes only", () => {
  const store = createStore(1);
  const seen: number[] = [];
  const stop = store.watch((value) => seen.push(value));
  store.set(1);
  store.set(2);
  store.update((n) => n + 1);
  stop();
  store.set(9);
  expect(seen).toEqual([2, 3]);
  expect(store.get()).toBe(9);
});
