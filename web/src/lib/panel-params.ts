// SPDX-License-Identifier: Apache-2.0

// The URL parameters of single panels: the settings that differ from the default. Each is a parameter PANEL:VALUE,
// and may occur several times. Unknown panels and values are not an error; each panel uses what it understands.

export interface PanelState {
  /** The scale of values, where it is not the default one. */
  scale?: "log" | "linear" | undefined;
  /** The only series that is shown. */
  only?: string | undefined;
  /** The title of the column that a table is sorted by; "-" before it sorts descending. */
  sort?: string | undefined;
  /** The chosen variant: the metric of a box plot, or what the widths of an icicle stand for. */
  pick?: string | undefined;
  /** The part of an icicle that fills the width, as a path from the root. */
  path?: readonly string[] | undefined;
}

/** By id of the panel. */
type PanelStates = Readonly<Record<string, PanelState>>;

/** By page: a panel may be on several pages, with a setting on each. */
export type AllPanels = Readonly<Record<string, PanelStates>>;

/** Limit of panel parameters in an address. Further ones are dropped. */
export const MOST_PANEL_PARAMS = 64;
const LONGEST_VALUE = 300;

const KEYS = ["scale", "only", "sort", "pick", "path"] as const satisfies readonly (keyof PanelState)[];
const FORM = /^([a-z][a-z0-9-]{0,63}):(.+)$/s;

/** Parses the panel settings of the current page. */
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

/** Adds the panel settings of the current page, always in the same order. */
export function formatPanels(page: string, panels: AllPanels | undefined, params: URLSearchParams): void {
  const states = Object.entries(panels?.[page] ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  for (const key of KEYS) {
    for (const [id, state] of states) {
      for (const value of [state[key] ?? []].flat()) params.append(key, `${id}:${value}`);
    }
  }
}

/** Changes the settings of a panel. An undefined member returns to the default. */
export function setPanel(panels: AllPanels | undefined, page: string, id: string, change: PanelState): AllPanels | undefined {
  const { [id]: before, ...others } = panels?.[page] ?? {};
  const state = Object.entries({ ...before, ...change }).filter(([, value]) => value !== undefined && value.length > 0);
  return withPage(panels, page, state.length > 0 ? { ...others, [id]: Object.fromEntries(state) } : others);
}

/** Resets a panel, or all panels of a page. */
export function resetPanels(panels: AllPanels | undefined, page: string, id?: string): AllPanels | undefined {
  const states = Object.entries(panels?.[page] ?? {}).filter(([each]) => id !== undefined && each !== id);
  return withPage(panels, page, Object.fromEntries(states));
}

function withPage(panels: AllPanels | undefined, page: string, states: PanelStates): AllPanels | undefined {
  const rest = Object.entries(panels ?? {}).filter(([each]) => each !== page);
  const all = Object.keys(states).length > 0 ? [...rest, [page, states] as const] : rest;
  return all.length > 0 ? Object.fromEntries(all) : undefined;
}
