// SPDX-License-Identifier: Apache-2.0

// The part of the URL that belongs to single panels: what a person has set
// otherwise than it is at first. Each is a parameter PANEL:VALUE, which may be
// there several times. What names nothing that is there is not an error: whoever
// draws the panel takes what it understands.

export interface PanelState {
  /** The scale of values, where it is not the panel's own. */
  scale?: "log" | "linear" | undefined;
  /** The one series that is shown. */
  only?: string | undefined;
  /** The title of the column that a table is sorted by, greatest first after a "-". */
  sort?: string | undefined;
  /** Which of several pictures is shown: the metric of a box plot, what widths stand for. */
  pick?: string | undefined;
  /** The part of an icicle that is widened, from the whole to it. */
  path?: readonly string[] | undefined;
}

/** By the panel's id. */
type PanelStates = Readonly<Record<string, PanelState>>;

/** By page: a panel may be on several, and each has an address of its own. */
export type AllPanels = Readonly<Record<string, PanelStates>>;

/** A link with more than this is cut: it was not made by hand. */
export const MOST_PANEL_PARAMS = 64;
const LONGEST_VALUE = 300;

const KEYS = ["scale", "only", "sort", "pick", "path"] as const satisfies readonly (keyof PanelState)[];
const FORM = /^([a-z][a-z0-9-]{0,63}):(.+)$/s;

/** Reads what is set on the page that is shown. */
export function parsePanels(page: string, params: URLSearchParams): AllPanels | undefined {
  const states: Record<string, PanelState> = {};
  let left = MOST_PANEL_PARAMS;
  for (const key of KEYS) {
    for (const text of params.getAll(key)) {
      const [, id, value] = FORM.exec(text) ?? [];
      if (id === undefined || value === undefined || value.length > LONGEST_VALUE || left-- <= 0) continue;
      const state = states[id] ?? {};
      if (key === "path") states[id] = { ...state, path: [...(state.path ?? []), value] };
      else if (key !== "scale") states[id] = { ...state, [key]: value };
      else if (value === "log" || value === "linear") states[id] = { ...state, scale: value };
    }
  }
  return Object.keys(states).length > 0 ? { [page]: states } : undefined;
}

/** Adds what is set on the page that is shown, always in the same order. */
export function formatPanels(page: string, panels: AllPanels | undefined, params: URLSearchParams): void {
  const states = Object.entries(panels?.[page] ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  for (const key of KEYS) {
    for (const [id, state] of states) {
      for (const value of [state[key] ?? []].flat()) params.append(key, `${id}:${value}`);
    }
  }
}

/** Sets something of a panel; what is undefined is again as it is at first. */
export function setPanel(panels: AllPanels | undefined, page: string, id: string, change: PanelState): AllPanels | undefined {
  const { [id]: before, ...others } = panels?.[page] ?? {};
  const state = Object.entries({ ...before, ...change }).filter(([, value]) => value !== undefined && value.length > 0);
  return withPage(panels, page, state.length > 0 ? { ...others, [id]: Object.fromEntries(state) } : others);
}

/** Sets a panel, or all of a page, back. */
export function resetPanels(panels: AllPanels | undefined, page: string, id?: string): AllPanels | undefined {
  const states = Object.entries(panels?.[page] ?? {}).filter(([each]) => id !== undefined && each !== id);
  return withPage(panels, page, Object.fromEntries(states));
}

function withPage(panels: AllPanels | undefined, page: string, states: PanelStates): AllPanels | undefined {
  const rest = Object.entries(panels ?? {}).filter(([each]) => each !== page);
  const all = Object.keys(states).length > 0 ? [...rest, [page, states] as const] : rest;
  return all.length > 0 ? Object.fromEntries(all) : undefined;
}
