// SPDX-License-Identifier: Apache-2.0

// Nested shares: a tree from rows with a path and a value, and where each part
// lies. Pure; knows nothing of what the parts are.
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

export interface Placed {
  node: FlameNode;
  /** From the whole to this part; names in one path are unique. */
  path: readonly string[];
  depth: number;
  /** Place and width as shares of what is shown. */
  left: number;
  width: number;
}

/** Parts of a part beyond this many are one. */
const MOST_CHILDREN = 24;
/** So are those that would be narrower than this share of the whole. */
const NARROWEST = 0.002;

/** Adds the rows up to a tree, greatest first. What is not above zero takes no time and is left out. */
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

/** Folds parts that are too many or too narrow to be seen into one without parts. */
function foldTree(node: FlameNode, whole: number): FlameNode {
  const sorted = [...node.children].sort((a, b) => b.value - a.value || a.name.localeCompare(b.name));
  const kept = sorted.filter((c, i) => i < MOST_CHILDREN && c.value >= NARROWEST * whole);
  const rest = sorted.slice(kept.length);
  const children = kept.map((c) => foldTree(c, whole));
  const [only] = rest;
  if (rest.length === 1 && only) children.push({ ...only, children: [] });
  if (rest.length > 1) children.push({ name: restName(rest.length), value: rest.reduce((sum, c) => sum + c.value, 0), children: [] });
  return { ...node, children };
}

/** The part at the end of a path, or as far as there is one. */
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

/** Where the parts lie when the one at a path fills the width; those above it stay, to go back to. */
export function place(root: FlameNode, focus: readonly string[]): Placed[] {
  const placed: Placed[] = [];
  const lay = (node: FlameNode, path: readonly string[], left: number, width: number): void => {
    placed.push({ node, path, depth: path.length, left, width });
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
    placed.push({ node: findNode(root, above).node, path: above, depth, left: 0, width: 1 });
  }
  lay(findNode(root, path).node, path, 0, 1);
  return placed;
}

/** Where an arrow key goes: up to the whole, down to its greatest part, left and right to the neighbours. */
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
