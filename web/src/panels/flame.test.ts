// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { partText } from "./charts/Icicle";
import { buildTree, findNode, neighbour, layOut } from "./flame";

const rows = [
  { path: ["redis", "read"], value: 30 },
  { path: ["redis", "write"], value: 50 },
  { path: ["nginx", "read"], value: 20 },
  { path: ["idle", "none"], value: 0 },
];
const tree = buildTree(rows, "all");

describe("buildTree", () => {
  it("adds up and sorts descending, without zero values", () => {
    expect([tree.value, ...tree.children.map((c) => [c.name, c.value])]).toEqual([100, ["redis", 80], ["nginx", 20]]);
    expect(tree.children[0]?.children.map((c) => c.name)).toEqual(["write", "read"]);
  });

  it("folds parts that are too many or too narrow, and keeps the total", () => {
    const many = buildTree(Array.from({ length: 128 }, (_, i) => ({ path: [`w${i}`, "read"], value: 128 - i })), "all");
    expect(many.children).toHaveLength(25);
    expect(many.children.at(-1)?.name).toBe("the rest (104)");
    expect(many.children.reduce((sum, c) => sum + c.value, 0)).toBe(many.value);
    const narrow = buildTree([{ path: ["a"], value: 10_000 }, { path: ["b"], value: 1 }, { path: ["c"], value: 1 }], "all");
    expect(narrow.children.map((c) => c.name)).toEqual(["a", "the rest (2)"]);
  });
});

describe("layOut", () => {
  it("gives each part its share below what holds it", () => {
    const at = layOut(tree, []).map((p) => [p.path.join("/"), p.depth, p.left, p.width]);
    expect(at).toEqual([
      ["", 0, 0, 1],
      ["redis", 1, 0, 0.8],
      ["redis/write", 2, 0, 0.5],
      ["redis/read", 2, 0.5, expect.closeTo(0.3)],
      ["nginx", 1, 0.8, expect.closeTo(0.2)],
      ["nginx/read", 2, 0.8, expect.closeTo(0.2)],
    ]);
  });

  it("zooms into a part, and keeps its ancestors", () => {
    expect(layOut(tree, ["nginx"]).map((p) => [p.path.join("/"), p.depth, p.width])).toEqual([
      ["", 0, 1],
      ["nginx", 1, 1],
      ["nginx/read", 2, 1],
    ]);
    expect(layOut(tree, ["gone", "read"])).toEqual(layOut(tree, []));
  });
});

it("arrow keys go up, down and to the neighbours, and stop at the ends", () => {
  const walk = (path: string[], key: string): string => neighbour(tree, path, key).join("/");
  expect(walk([], "ArrowDown")).toBe("redis");
  expect(walk(["redis"], "ArrowDown")).toBe("redis/write");
  expect(walk(["redis"], "ArrowRight")).toBe("nginx");
  expect(walk(["nginx"], "ArrowRight")).toBe("nginx");
  expect(walk(["redis", "write"], "ArrowUp")).toBe("redis");
  expect(walk(["redis", "write"], "ArrowDown")).toBe("redis/write");
  expect(walk([], "ArrowLeft")).toBe("");
});

it("describes a part in words", () => {
  const part = layOut(tree, []).find((p) => p.path.join("/") === "redis/write");
  expect(part && partText(part, tree.value, "per_second", ["Workload", "System call"])).toBe("System call: redis, write: 50/s, 50 % of all");
  expect(findNode(tree, ["redis", "nothing"]).path).toEqual(["redis"]);
});
