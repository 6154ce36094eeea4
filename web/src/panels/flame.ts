// SPDX-License-Identifier: Apache-2.0

// Nested shares: builds a tree from rows with a path and a value, and computes the position of each part. Pure.
import { restName } from "../lib/series";

interface FlameRow {
  path: readonly string[];
  value: number;
}

export interface FlameNode {
  name: string;
  value: number;
  children: FlameNode[];
}

export interface LaidOut {
  node: FlameNode;
  /** The path from the root. Names in one path are unique. */
  path: readonly string[];
  depth: number;
  /** Position and width as shares of the visible width. */
  left: number;
  width: number;
}

/** Maximum number of children. Others are folded into one. */
const MOST_CHILDREN = 24;
/** Minimum share of the whole. Narrower parts are folded too. */
const NARROWEST = 0.002;

/** Adds the rows to a tree, sorted in descending order. Rows without a value above zero are omitted. */
export function buildTree(rows: readonly FlameRow[], whole: string): FlameNode {
  const root: FlameNode = { name: whole, value: 0, children: [] };
  for (const { path, value } of rows) {
    if (!(value > 0) || !Number.isFinite(value)) continue;
    let node = root;
    node.value += value;
    for (const name of path) {
      let child = node.children.find((c) => c.name === name);
      if (!child) {
        child = { name, value: 0, children: [] };
        node.children.push(child);
      }
      child.value += value;
      node = child;
    }
  }
  return foldTree(root, root.value);
}

/** Folds parts that are too many or too narrow into one without children. */
function foldTree(node: FlameNode, whole: number): FlameNode {
  const sorted = [...node.children].sort((a, b) => b.value - a.value || a.name.localeCompare(b.name));
  const visible = sorted.filter((c, i) => i < MOST_CHILDREN && c.value >= NARROWEST * whole);
  const rest = sorted.slice(visible.length);
  const children = visible.map((c) => foldTree(c, whole));
  const [only] = rest;
  if (rest.length === 1 && only) children.push({ ...only, children: [] });
  if (rest.length > 1) children.push({ name: restName(rest.length), value: rest.reduce((sum, c) => sum + c.value, 0), children: [] });
  return { ...node, children };
}

/** Returns the part at the end of a path, or its deepest ancestor that exists. */
export function findNode(root: FlameNode, path: readonly string[]): { node: FlameNode; path: string[] } {
  let node = root;
  const found: string[] = [];
  for (const name of path) {
    const child = node.children.find((c) => c.name === name);
    if (!child) break;
    node = child;
    found.push(name);
  }
  return { node, path: found };
}

/** Computes the positions when the part at a path fills the width. Its ancestors stay visible above it. */
export function layOut(root: FlameNode, focus: readonly string[]): LaidOut[] {
  const parts: LaidOut[] = [];
  const lay = (node: FlameNode, path: readonly string[], left: number, width: number): void => {
    parts.push({ node, path, depth: path.length, left, width });
    let at = left;
    for (const child of node.children) {
      const share = node.value > 0 ? (width * child.value) / node.value : 0;
      lay(child, [...path, child.name], at, share);
      at += share;
    }
  };
  const { path } = findNode(root, focus);
  for (let depth = 0; depth < path.length; depth++) {
    const above = path.slice(0, depth);
    parts.push({ node: findNode(root, above).node, path: above, depth, left: 0, width: 1 });
  }
  lay(findNode(root, path).node, path, 0, 1);
  return parts;
}

/** Returns the path that an arrow key moves to: the parent, the greatest child, or a sibling. */
export function neighbour(root: FlameNode, path: readonly string[], key: string): readonly string[] {
  if (key === "ArrowUp") return path.slice(0, -1);
  const { node } = findNode(root, path);
  if (key === "ArrowDown") return node.children[0] ? [...path, node.children[0].name] : path;
  if (path.length === 0) return path;
  const above = path.slice(0, -1);
  const siblings = findNode(root, above).node.children;
  const next = siblings[siblings.indexOf(node) + (key === "ArrowRight" ? 1 : -1)];
  return next ? [...above, next.name] : path;
}
