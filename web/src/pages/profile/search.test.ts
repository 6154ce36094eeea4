// SPDX-License-Identifier: Apache-2.0
import { expect, it } from "vitest";
import type { TreeFrame } from "../../api/profiles";
import { type Found, searching, STEP } from "./search";
import { buildTree, type Tree } from "./tree";

function all(tree: Tree, wanted: string): Found | undefined {
  const search = searching(tree, wanted);
  for (;;) {
    const next = search.next();
    if (next.done) return next.value;
  }
}

const table = ["main", "parse", "read", "write"].map((name) => ({ name, library: `/bin/${name === "read" ? "libc" : "app"}`, kind: "" }));

it("searches names and libraries, and counts nested hits once", () => {
  // main 100: parse 70 (read 30, parse 20 (read 5)), write 20, and 10 of its own.
  const tree = buildTree(table, 100, { depths: [0, 1, 2, 2, 3, 1], frames: [0, 1, 2, 1, 2, 3], totals: [100, 70, 30, 20, 5, 20], selfs: [] });
  expect(all(tree, "PARSE")?.value).toBe(70);
  expect(all(tree, "libc")).toEqual({ marked: Uint8Array.from([0, 0, 1, 0]), value: 35 });
  expect(all(tree, "nothing")?.value).toBe(0);
  expect(all(tree, " ")).toBeUndefined();
});

it("looks at few functions or nodes in each step, however many there are", () => {
  const n = 100_000;
  let looked = 0;
  const name = {
    get name(): string {
      looked++;
      return "f";
    },
    library: "",
    kind: "",
  };
  const one = new Array<number>(n).fill(1);
  const names = new Array<TreeFrame>(n).fill(name);
  const tree = buildTree(names, n, { depths: one.map(() => 0), frames: one.map((_, i) => i), totals: one, selfs: [] });
  let nodes = 0;
  const total = new Proxy(tree.total, {
    get: (list, key): unknown => {
      if (typeof key === "string" && /^\d+$/.test(key)) nodes++;
      return Reflect.get(list, key);
    },
  });
  const search = searching({ ...tree, total }, "f");
  let steps = 0;
  for (let before = [0, 0]; ; steps++) {
    const next = search.next();
    expect(looked - (before[0] ?? 0) + nodes - (before[1] ?? 0)).toBeLessThanOrEqual(STEP);
    before = [looked, nodes];
    if (next.done) {
      expect(next.value?.value).toBe(n);
      break;
    }
  }
  expect([looked, nodes]).toEqual([n, n]);
  expect(steps).toBeLessThanOrEqual(2 * Math.ceil(n / STEP));
});
