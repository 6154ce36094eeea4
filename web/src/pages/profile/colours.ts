// SPDX-License-Identifier: Apache-2.0

// Colours of frames and of what threads do, from the tokens of the theme.
import { HUES, hashName, slotVariable } from "../../lib/colour";
import { token } from "../../lib/theme";
import type { TreeFrame } from "../../api/profiles";

export interface Palette {
  text: string;
  accent: string;
  hit: string;
  rest: string;
  series: readonly string[];
  more: string;
  less: string;
}

/** Reads the colours of the current theme. */
export function palette(): Palette {
  return {
    text: token("--text"),
    accent: token("--accent"),
    hit: token("--warn"),
    rest: token("--series-rest"),
    series: Array.from({ length: HUES }, (_, i) => token(slotVariable(i))),
    more: token("--series-1"),
    less: token("--series-0"),
  };
}

/** The colour of a function: of the kernel, without a name, or by its library. */
export function libraryColour(colours: Palette, frame: TreeFrame | undefined): string {
  if (!frame || frame.kind === "unresolved") return colours.rest;
  if (frame.kind === "kernel") return colours.series[1] ?? colours.rest;
  const hue = hashName(frame.library) % (HUES - 1);
  return colours.series[hue < 1 ? hue : hue + 1] ?? colours.rest; // 1 is the kernel's
}

/** By how many times a share has changed, in steps: 0 below 1.2, then from 1.2, 2 and 5 on. Negative if it has shrunk. */
export function changeStep(before: number, after: number): number {
  const [small, large] = before < after ? [before, after] : [after, before];
  const step = 5 * large < 6 * small ? 0 : large < 2 * small ? 1 : large < 5 * small ? 2 : 3;
  return after < before ? 0 - step : step;
}

/** The colours of states of threads. */
export function stateColour(colours: Palette, state: string, index: number): string {
  const fixed: Readonly<Record<string, number>> = { user: 0, "system call": 1, kernel: 8, "in enclave": 2 };
  const slot = fixed[state];
  if (slot !== undefined) return colours.series[slot] ?? colours.rest;
  if (state.startsWith("waits: CPU")) return colours.rest;
  return [3, 4, 7, 6, 9, 5].map((i) => colours.series[i])[index % 6] ?? colours.rest;
}
