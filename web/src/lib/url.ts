// SPDX-License-Identifier: Apache-2.0

// The state of the page and its form in the URL. Everything that a person
// would expect a shared link to keep is here; nothing else is.
import { DEFAULT_RANGE, findRange, formatUrlTime, parseTime } from "./time";

export const PAGES = ["overview", "findings", "tee", "system", "containers", "infrastructure", "status"] as const;
export type PageId = (typeof PAGES)[number];

/** Whether the workload filter reaches what the page shows: the machine as a whole has no workload. */
export function isFiltered(page: PageId): boolean {
  return page !== "infrastructure";
}

export interface ViewState {
  page: PageId;
  /** Chosen workloads, sorted; none means all. */
  workloads: readonly string[];
  /** The relative range: shown when `fixed` is absent, returned to after it. */
  range: string;
  /** An absolute time range, Unix seconds. Its presence stops the live tail. */
  fixed?: { from: number; to: number } | undefined;
  /** Whether the chart follows the clock. Always false with `fixed`. */
  live: boolean;
}

export const DEFAULT_VIEW: ViewState = { page: "overview", workloads: [], range: DEFAULT_RANGE, live: true };

function isPage(text: string | null): text is PageId {
  return PAGES.some((page) => page === text);
}

/** Reads the state from a query string. What it does not understand it leaves out. */
export function parseView(search: string): ViewState {
  const params = new URLSearchParams(search);
  const page = params.get("page");
  const range = params.get("range") ?? "";
  const from = parseTime(params.get("from") ?? "");
  const to = parseTime(params.get("to") ?? "");
  const view: ViewState = {
    page: isPage(page) ? page : DEFAULT_VIEW.page,
    workloads: [...new Set(params.getAll("w").filter((name) => name !== ""))].sort(),
    range: findRange(range) ? range : DEFAULT_RANGE,
    live: params.get("live") !== "0",
  };
  if (from !== undefined && to !== undefined && from < to) {
    view.fixed = { from, to };
    view.live = false;
  }
  return view;
}

/** Writes the state as a query string; what is as by default is left out. */
export function formatView(view: ViewState): string {
  const params = new URLSearchParams();
  if (view.page !== DEFAULT_VIEW.page) params.set("page", view.page);
  for (const name of view.workloads) params.append("w", name);
  if (view.range !== DEFAULT_RANGE) params.set("range", view.range);
  if (view.fixed) {
    params.set("from", formatUrlTime(view.fixed.from));
    params.set("to", formatUrlTime(view.fixed.to));
  } else if (!view.live) {
    params.set("live", "0");
  }
  // Colons are legal in a query and far easier to read.
  const text = params.toString().replaceAll("%3A", ":");
  return text === "" ? "/" : `/?${text}`;
}

/** Adds the workload to the choice, or takes it away. */
export function toggleWorkload(view: ViewState, name: string): ViewState {
  const workloads = view.workloads.includes(name)
    ? view.workloads.filter((other) => other !== name)
    : [...view.workloads, name].sort();
  return { ...view, workloads };
}
