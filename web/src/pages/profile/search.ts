// SPDX-License-Identifier: Apache-2.0

// The search of a profile in small steps, so that the page answers keys between them however large the profile is.
import { useEffect, useState } from "preact/hooks";
import { type Tree } from "./tree";

/** What a search has found. */
export interface Found {
  /** Which functions of the table match. */
  marked: Uint8Array;
  /** The value of all nodes with such a function, each counted once. */
  value: number;
}

/** The number of functions or nodes of a step. */
export const STEP = 4096;

/** Searches names and libraries. Each step looks at no more than STEP functions or nodes. */
export function* searching(tree: Tree, wanted: string): Generator<undefined, Found | undefined> {
  const text = wanted.trim().toLowerCase();
  if (text === "") return undefined;
  const { table, frame, end, total } = tree;
  const marked = new Uint8Array(table.length);
  for (let i = 0; i < table.length; i++) {
    if (i > 0 && i % STEP === 0) yield;
    const f = table[i];
    marked[i] = Number(f !== undefined && (f.name.toLowerCase().includes(text) || f.library.toLowerCase().includes(text)));
  }
  let value = 0;
  for (let i = 1, seen = 0; i < frame.length; seen++) {
    if (seen % STEP === 0) yield;
    const hit = marked[frame[i] ?? 0] === 1;
    if (hit) value += total[i] ?? 0;
    i = hit ? (end[i] ?? frame.length) : i + 1; // what is below a hit is part of it
  }
  return { marked, value };
}

/** Returns the result of the last finished search of this tree. A new search cancels the running one. */
export function useSearch(tree: Tree, wanted: string): Found | undefined {
  const [found, setFound] = useState<{ tree: Tree; result: Found | undefined }>();
  useEffect(() => {
    const search = searching(tree, wanted);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const step = (): void => {
      const next = search.next();
      if (next.done) setFound({ tree, result: next.value });
      else timer = setTimeout(step);
    };
    step();
    return () => {
      clearTimeout(timer);
    };
  }, [tree, wanted]);
  return found?.tree === tree ? found.result : undefined;
}
