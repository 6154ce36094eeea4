// SPDX-License-Identifier: Apache-2.0

// The geometry of a flame graph: where its frames are, which of them are visible, and what a search or a function selects. Pure.
// The work of drawing depends on the size of the picture and not on that of the profile.
import type { ProfileTree, TreeFrame } from "../../api/profiles";

/** A tree whose node 0 is the whole. All lists have an entry for each node. */
export interface Tree {
  table: readonly TreeFrame[];
  /** Indices into the table. That of the whole is -1. */
  frame: Int32Array;
  depth: Int32Array;
  parent: Int32Array;
  /** The node after the last descendant. */
  end: Int32Array;
  total: Float64Array;
  self: Float64Array;
  /** Where the node begins, in the unit of the values. */
  start: Float64Array;
  /** The nodes of each row, from left to right. */
  rows: readonly Int32Array[];
}

export const WHOLE = 0;

type Lists = Pick<ProfileTree, "depths" | "frames" | "totals" | "selfs">;

/** Computes the places of nodes. Nodes that contradict each other are dropped. */
export function buildTree(table: readonly TreeFrame[], whole: number, { depths, frames, totals, selfs }: Lists): Tree {
  const n = depths.length + 1;
  const tree = {
    table,
    frame: new Int32Array(n),
    depth: new Int32Array(n),
    parent: new Int32Array(n),
    end: new Int32Array(n),
    total: new Float64Array(n),
    self: new Float64Array(n),
    start: new Float64Array(n),
  };
  const rows: number[][] = [[WHOLE]];
  const used = new Float64Array(n); // by children
  const path = [WHOLE];
  tree.frame[WHOLE] = -1;
  tree.parent[WHOLE] = -1;
  tree.total[WHOLE] = whole;
  for (let i = 1; i < n; i++) {
    const depth = Math.min((depths[i - 1] ?? 0) + 1, path.length);
    for (let d = path.length - 1; d >= depth; d--) tree.end[path[d] ?? 0] = i;
    path.length = depth;
    const parent = path[depth - 1] ?? 0;
    path.push(i);
    tree.depth[i] = depth;
    tree.parent[i] = parent;
    tree.frame[i] = Math.min(frames[i - 1] ?? 0, table.length - 1);
    tree.total[i] = totals[i - 1] ?? 0;
    tree.self[i] = selfs[i - 1] ?? 0;
    tree.start[i] = at(tree.start, parent) + at(used, parent);
    used[parent] = at(used, parent) + at(tree.total, i);
    (rows[depth] ??= []).push(i);
  }
  for (const left of path) tree.end[left] = n;
  return { ...tree, rows: rows.map((row) => Int32Array.from(row)) };
}

const at = (list: Float64Array | Int32Array, i: number): number => list[i] ?? 0;

/** What is visible: an interval of values, and rows from one on. */
export interface Window {
  from: number;
  to: number;
  top: number;
  rows: number;
  /** CSS pixels. */
  width: number;
}

/** The position in a row of the first node that ends after a value, from a position on. */
function firstAfter(tree: Tree, row: Int32Array, value: number, low: number): number {
  let high = row.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const node = at(row, middle);
    if (at(tree.start, node) + at(tree.total, node) > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** A node, or several that are narrower than a pixel, which the node -1 stands for. */
type Draw = (node: number, left: number, width: number, row: number) => void;

/**
 * Calls `draw` with the visible nodes. Neighbours that are narrower than a pixel become one, and are skipped a pixel at a time.
 * So there are at most as many calls and steps in a row as it has pixels, for any size of the tree. Returns the number of
 * steps, each of which is a binary search.
 */
export function visible(tree: Tree, { from, to, top, rows, width }: Window, draw: Draw): number {
  const scale = width / (to - from);
  let steps = 0;
  for (let depth = top; depth < Math.min(top + rows, tree.rows.length); depth++) {
    const row = tree.rows[depth];
    if (!row) break;
    const edges = (i: number): [number, number] => {
      const start = at(tree.start, at(row, i));
      return [(Math.max(start, from) - from) * scale, (Math.min(start + at(tree.total, at(row, i)), to) - from) * scale];
    };
    for (let i = firstAfter(tree, row, from, 0); i < row.length && at(tree.start, at(row, i)) < to; ) {
      steps++;
      const [left, end] = edges(i);
      if (end - left >= 1) {
        draw(at(row, i), left, end - left, depth - top);
        i++;
        continue;
      }
      let right = Math.max(end, left + 1);
      i = firstAfter(tree, row, from + right / scale, i + 1);
      while (i < row.length) {
        const [l, r] = edges(i);
        if (r - l >= 1 || l >= right + 1 || at(tree.start, at(row, i)) >= to) break;
        steps++;
        right = Math.max(r, right + 1);
        i = firstAfter(tree, row, from + right / scale, i + 1);
      }
      draw(-1, left, Math.min(right, width) - left, depth - top);
    }
  }
  return steps;
}

/** The node at a place, or -1. */
export function nodeAt(tree: Tree, { from, to, top, width }: Window, x: number, row: number): number {
  const nodes = tree.rows[top + row];
  if (!nodes) return -1;
  const value = from + (x / width) * (to - from);
  const found = nodes[firstAfter(tree, nodes, value, 0)];
  return found !== undefined && at(tree.start, found) <= value ? found : -1;
}

function children(tree: Tree, node: number): number[] {
  const found: number[] = [];
  for (let child = node + 1; child < at(tree.end, node); child = at(tree.end, child)) found.push(child);
  return found;
}

/** The node that an arrow key moves to: the caller, the widest called function, or a neighbour in the row. */
export function moved(tree: Tree, node: number, key: string): number {
  if (key === "ArrowUp") return Math.max(at(tree.parent, node), WHOLE);
  if (key === "ArrowDown") {
    const value = (child: number): number => at(tree.total, child);
    return children(tree, node).reduce((best, child) => (best === node || value(child) > value(best) ? child : best), node);
  }
  const row = tree.rows[at(tree.depth, node)];
  if (!row) return node;
  return row[firstAfter(tree, row, at(tree.start, node), 0) + (key === "ArrowRight" ? 1 : -1)] ?? node;
}

/** The nodes with wanted functions that are not below another one. */
function outermost(tree: Tree, wanted: (frame: number) => boolean): number[] {
  const found: number[] = [];
  for (let i = 1; i < tree.frame.length; ) {
    const hit = wanted(at(tree.frame, i));
    if (hit) found.push(i);
    i = hit ? at(tree.end, i) : i + 1;
  }
  return found;
}

export interface FunctionRow {
  frame: number;
  self: number;
  total: number;
}

/** The functions with their values, those with the largest own value first. A function that calls itself counts once. */
export function functions(tree: Tree): FunctionRow[] {
  const rows = tree.table.map((_, frame): FunctionRow => ({ frame, self: 0, total: 0 }));
  const until = new Int32Array(tree.table.length);
  for (let i = 1; i < tree.frame.length; i++) {
    const frame = at(tree.frame, i);
    const row = rows[frame];
    if (!row) continue;
    row.self += at(tree.self, i);
    if (i < at(until, frame)) continue;
    row.total += at(tree.total, i);
    until[frame] = at(tree.end, i);
  }
  return rows.filter((r) => r.total > 0).sort((a, b) => b.self - a.self || b.total - a.total);
}

interface Item {
  node: number;
  weight: number;
}

const weighed = (tree: Tree, nodes: readonly number[]): Item[] => nodes.map((node) => ({ node, weight: at(tree.total, node) }));

/** The outermost nodes of a function. */
const occurrences = (tree: Tree, wanted: number): Item[] => weighed(tree, outermost(tree, (frame) => frame === wanted));

/** Nodes with less than this part of the whole are left out of merged trees: on most screens they are narrower than a pixel. */
const LEAST_PART = 1 / 5000;
/** The number of nodes of a merged tree. Deep stacks that differ at their ends have many callers. */
const MOST_MERGED = 200_000;

/** Merges nodes of one function, then what each leads to, and so on. */
function merged(tree: Tree, begin: Item[], next: (item: Item) => Item[]): Tree {
  const lists = { depths: [] as number[], frames: [] as number[], totals: [] as number[], selfs: [] as number[] };
  const sum = (items: readonly Item[]): number => items.reduce((all, i) => all + i.weight, 0);
  const open: { items: Item[]; depth: number }[] = [{ items: begin, depth: 0 }];
  const least = sum(begin) * LEAST_PART;
  for (let group = open.pop(); group && lists.depths.length < MOST_MERGED; group = open.pop()) {
    const { items, depth } = group;
    const groups = new Map<number, Item[]>();
    for (const item of items.flatMap(next)) {
      const frame = at(tree.frame, item.node);
      const same = groups.get(frame);
      if (same) same.push(item);
      else groups.set(frame, [item]);
    }
    const inner = [...groups.values()].map((list) => ({ items: list, depth: depth + 1, value: sum(list) })).sort((a, b) => a.value - b.value);
    const all = sum(items);
    lists.depths.push(depth);
    lists.frames.push(at(tree.frame, items[0]?.node ?? 0));
    lists.totals.push(all);
    lists.selfs.push(all - inner.reduce((rest, g) => rest + g.value, 0));
    for (const one of inner) if (one.value >= least) open.push(one); // the largest is taken first
  }
  return buildTree(tree.table, sum(begin), lists);
}

/** The callers of a function, each with the time of the function when it is called by it. */
export function callers(tree: Tree, frame: number): Tree {
  return merged(tree, occurrences(tree, frame), ({ node, weight }) => {
    const parent = at(tree.parent, node);
    return parent > WHOLE ? [{ node: parent, weight }] : [];
  });
}

/** What a function calls, from all its callers. */
export function callees(tree: Tree, frame: number): Tree {
  return merged(tree, occurrences(tree, frame), ({ node }) => weighed(tree, children(tree, node)));
}
