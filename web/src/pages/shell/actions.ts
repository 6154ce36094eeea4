// SPDX-License-Identifier: Apache-2.0

// Actions on the view by button or key, and the list of keys.
import { resetPanels } from "../../lib/panel-params";
import type { Session } from "../../lib/session";
import { shownInterval } from "../../lib/session";
import { toggleTheme } from "../../lib/theme";
import { findRange, RANGES } from "../../lib/time";
import { clearFilters, type PageId, PAGES, type ViewState } from "../../lib/url";

/** Stops the live view at this moment, or resumes it. */
export function togglePause(view: ViewState, now: number): ViewState {
  if (!view.live) return { ...view, fixed: undefined, live: true };
  const { from, to } = shownInterval(view, now);
  return { ...view, live: false, fixed: { from: Math.round(from), to: Math.round(to) } };
}

/** Changes to the next longer (+1) or shorter (-1) relative range. */
function stepRange(view: ViewState, by: 1 | -1): ViewState {
  const seconds = findRange(view.range)?.seconds ?? 0; // a typed range may lie between two of the list
  const next = by > 0 ? RANGES.find((range) => range.seconds > seconds) : RANGES.filter((range) => range.seconds < seconds).at(-1);
  return next ? { ...view, range: next.id, fixed: undefined, live: true } : view;
}

interface Shortcut {
  keys: readonly string[];
  does: string;
  run: (session: Session) => void;
}

function click(id: string): void {
  document.getElementById(id)?.click();
}

/** The keys of pages whose first letter has another meaning. */
const LETTERS: Readonly<Partial<Record<PageId, string>>> = { fleet: "n", profile: "g" };

export const SHORTCUTS: readonly Shortcut[] = [
  ...PAGES.map((page, i) => ({
    keys: [i < 10 ? String((i + 1) % 10) : (LETTERS[page] ?? page.charAt(0))],
    does: `Go to ${page}`,
    run: (s: Session): void => {
      s.view.update((v) => ({ ...v, page }));
    },
  })),
  { keys: ["/", "f"], does: "Filter by workload, container, pod, runtime or node", run: () => { click("filter-button"); } },
  { keys: ["r"], does: "Choose a time range", run: () => { click("range-button"); } },
  { keys: ["["], does: "Shorter time range", run: (s) => { s.view.update((v) => stepRange(v, -1)); } },
  { keys: ["]"], does: "Longer time range", run: (s) => { s.view.update((v) => stepRange(v, 1)); } },
  { keys: ["p"], does: "Pause or follow live", run: (s) => { s.view.update((v) => togglePause(v, s.now.get())); } },
  { keys: ["c"], does: "Clear all filters", run: (s) => { s.view.update(clearFilters); } },
  { keys: ["x"], does: "Reset all panels of the page", run: (s) => { s.view.update((v) => ({ ...v, panels: resetPanels(v.panels, v.page) })); } },
  { keys: ["t"], does: "Dark or light", run: () => { toggleTheme(); } },
  { keys: ["?"], does: "Show these keys", run: () => { click("help-button"); } },
];

/** Reports whether the focused element uses the key itself. */
function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.matches("input, textarea, select") || target.closest("dialog[open], .popover-panel") !== null;
}

export function bindShortcuts(session: Session, document: Document): () => void {
  const onKey = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    const shortcut = SHORTCUTS.find((s) => s.keys.includes(event.key));
    if (!shortcut) return;
    event.preventDefault();
    shortcut.run(session);
  };
  document.addEventListener("keydown", onKey);
  return () => {
    document.removeEventListener("keydown", onKey);
  };
}
