// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { changeStep } from "./colours";
import { buildTree, callees, callers, functions, moved, nodeAt, type Tree, visible } from "./tree";

const table = ["main", "parse", "read", "write"].map((name) => ({ name, library: `/bin/${name === "read" ? "libc" : "app"}`, kind: "" }));

/** main 100: parse 70 (read 30, parse 20 (read 5)), write 20, and 10 of its own. */
const tree = buildTree(table, 100, {
  depths: [0, 1, 2, 2, 3, 1],
  frames: [0, 1, 2, 1, 2, 3],
  totals: [100, 70, 30, 20, 5, 20],
  selfs: [10, 20, 30, 15, 5, 20],
});

/** Paths with their values. */
function paths(of: Tree): Record<string, number> {
  const found: Record<string, number> = {};
  for (let i = 1; i < of.frame.length; i++) {
    const names: string[] = [];
    for (let at = i; at > 0; at = of.parent[at] ?? 0) names.unshift(table[of.frame[at] ?? 0]?.name ?? "");
    found[names.join("/")] = of.total[i] ?? 0;
  }
  return found;
}

it("places nodes below what calls them", () => {
  expect([...tree.start]).toEqual([0, 0, 0, 0, 30, 30, 70]);
  expect([...tree.end]).toEqual([7, 7, 6, 4, 6, 6, 7]);
  expect(tree.rows.map((r) => [...r])).toEqual([[0], [1], [2, 6], [3, 4], [5]]);
});

it("adds up functions, and counts one that calls itself once", () => {
  const rows = functions(tree).map((r) => [table[r.frame]?.name, r.self, r.total]);
  expect(rows).toEqual([["parse", 35, 70], ["read", 35, 35], ["write", 20, 20], ["main", 10, 100]]);
});

it("merges callers and callees of a function", () => {
  expect(paths(callers(tree, 2))).toEqual({ read: 35, "read/parse": 35, "read/parse/main": 30, "read/parse/parse": 5, "read/parse/parse/main": 5 });
  expect(paths(callees(tree, 1))).toEqual({ parse: 70, "parse/read": 30, "parse/parse": 20, "parse/parse/read": 5 });
});

it("moves by arrows", () => {
  expect(["ArrowUp", "ArrowDown", "ArrowRight", "ArrowLeft"].map((key) => moved(tree, 2, key))).toEqual([1, 3, 6, 2]);
  expect(moved(tree, 0, "ArrowUp")).toBe(0);
});

it("finds the node at a place", () => {
  const window = { from: 0, to: 100, top: 0, rows: 5, width: 200 };
  expect([nodeAt(tree, window, 10, 2), nodeAt(tree, window, 139, 2), nodeAt(tree, window, 141, 2), nodeAt(tree, window, 199, 2), nodeAt(tree, window, 5, 4)]).toEqual([2, 2, 6, -1, -1]);
});

it("draws each pixel of a row at most once, however many frames there are", () => {
  const width = 500;
  const work = (n: number): [number, number] => {
    const many = buildTree([{ name: "f", library: "", kind: "" }], n, { depths: Array<number>(n).fill(0), frames: Array<number>(n).fill(0), totals: Array<number>(n).fill(1), selfs: [] });
    let rectangles = 0;
    let reached = 0;
    const steps = visible(many, { from: 0, to: n, top: 1, rows: 1, width }, (_, left, wide) => {
      expect(left).toBeLessThanOrEqual(reached + 1);
      reached = left + wide;
      rectangles++;
    });
    expect(reached).toBeCloseTo(width, 0);
    return [rectangles, steps];
  };
  expect(work(100)).toEqual([100, 100]);
  for (const n of [10_000, 1_000_000]) {
    const [rectangles, steps] = work(n);
    expect(rectangles).toBeLessThanOrEqual(width);
    expect(steps).toBeLessThanOrEqual(width);
  }
});

it("ignores contradictions of a hostile answer", () => {
  const odd = buildTree(table, 10, { depths: [7, 3], frames: [99], totals: [5], selfs: [] });
  expect([...odd.depth]).toEqual([0, 1, 2]);
  expect(odd.frame[1]).toBe(3);
});

it("colours a change by how many times a share is the other", () => {
  expect([changeStep(100, 110), changeStep(100, 150), changeStep(100, 300), changeStep(0, 1), changeStep(100, 50), changeStep(100, 0)]).toEqual([0, 1, 2, 3, -2, -3]);
});

describe("the callers and callees of hostile profiles", () => {
  const table = (n: number): { name: string; library: string; kind: string }[] => Array.from({ length: n }, (_, i) => ({ name: `f${i}`, library: "", kind: "" }));

  it("are found for a function with very many callees", () => {
    const n = 200_000;
    const one = new Array<number>(n).fill(1);
    const tree = buildTree(table(n + 1), n, { depths: [0, ...one], frames: Array.from({ length: n + 1 }, (_, i) => i), totals: [n, ...one], selfs: [0, ...one] });
    expect(callees(tree, 0).total[1]).toBe(n); // each callee has less than can be seen
  });

  it("are bounded for deep stacks that differ at their ends", () => {
    const [deep, wide] = [2000, 3000];
    const lists = { depths: [] as number[], frames: [] as number[], totals: [] as number[], selfs: [] as number[] };
    const add = (depth: number, frame: number, total: number, self: number): void => {
      lists.depths.push(depth);
      lists.frames.push(frame);
      lists.totals.push(total);
      lists.selfs.push(self);
    };
    for (let d = 0; d < deep; d++) add(d, 1 + d, wide, 0);
    for (let w = 0; w < wide; w++) {
      add(deep, 1 + deep + w, 1, 0);
      add(deep + 1, 0, 1, 1);
    }
    const up = callers(buildTree(table(1 + deep + wide), wide, lists), 0);
    expect(up.total[1]).toBe(wide);
    expect(up.frame.length).toBeLessThanOrEqual(200_001);
  });
});
