// SPDX-License-Identifier: Apache-2.0

// The state of the page and its form in the URL. It contains only the state that a shared link must keep.
import { type Filter, KINDS, LONGEST_PATTERN, MOST_FILTERS, ofKind, type Refused, sameFilter, sortFilters } from "./filters";
import { type AllPanels, formatPanels, parsePanels } from "./panel-params";
import { formatPageParams, type PageParams, parsePageParams } from "./page-params";
import { DEFAULT_RANGE, findRange, formatUrlTime, parseTime, type Zone } from "./time";

export const PAGES = ["overview", "findings", "tee", "system", "containers", "infrastructure", "workload", "compare", "explore", "status", "dashboards", "fleet", "profile"] as const;
export type PageId = (typeof PAGES)[number];

export interface ViewState extends PageParams {
  page: PageId;
  /** Workloads chosen by name, sorted; empty selects all. */
  workloads: readonly string[];
  /** The filters of other kinds, and workloads by pattern, sorted. */
  filters: readonly Filter[];
  /** Patterns of the address that the server has not checked yet. No panel is queried before. */
  unchecked?: readonly Filter[] | undefined;
  /** Patterns of the address that the server refuses. They filter nothing, and the page shows the reason. */
  refused?: readonly Refused[] | undefined;
  /** The relative range. It applies while `fixed` is absent. */
  range: string;
  /** An absolute time range, Unix seconds. It stops the live view. */
  fixed?: { from: number; to: number } | undefined;
  /** Whether the chart follows the clock. Always false with `fixed`. */
  live: boolean;
  /** The time zone of all times. */
  zone: Zone;
  /** Settings of panels, by page. Only those of the current page are in the address. */
  panels?: AllPanels | undefined;
}

export const DEFAULT_VIEW: ViewState = {
  page: "overview",
  workloads: [],
  filters: [],
  range: DEFAULT_RANGE,
  live: true,
  zone: "local",
};

function isPage(text: string | null): text is PageId {
  return PAGES.some((page) => page === text);
}

/** Returns the parameter of a filter: w, container, ..., and w.re, container.re, ... for patterns. */
function parameter({ kind, regex }: Pick<Filter, "kind" | "regex">): string {
  return (kind === "workload" ? "w" : kind) + (regex ? ".re" : "");
}

/** Parses at most MOST_FILTERS filters. */
function parseFilters(params: URLSearchParams): Filter[] {
  const all = KINDS.flatMap((kind) =>
    [false, true].flatMap((regex) => [...new Set(params.getAll(parameter({ kind, regex })))].map((text) => ({ kind, text, regex }))),
  );
  return sortFilters(all.filter((f) => f.text !== "")).slice(0, MOST_FILTERS);
}

const isNamed = (f: Filter): boolean => f.kind === "workload" && !f.regex;

/** Returns every filter of the view, in order. */
export function allFilters(view: Pick<ViewState, "workloads" | "filters">): Filter[] {
  return [...view.workloads.map((text): Filter => ({ kind: "workload", text, regex: false })), ...view.filters];
}

/** Parses the state from a query string. Invalid parameters are ignored. */
export function parseView(search: string): ViewState {
  const params = new URLSearchParams(search);
  const page = params.get("page");
  const range = params.get("range") ?? "";
  const from = parseTime(params.get("from") ?? "");
  const to = parseTime(params.get("to") ?? "");
  const written = parseFilters(params);
  const unchecked = written.filter((f) => f.regex);
  const filters = written.filter((f) => !f.regex);
  const view: ViewState = {
    page: isPage(page) ? page : DEFAULT_VIEW.page,
    workloads: filters.filter(isNamed).map((f) => f.text),
    filters: filters.filter((f) => !isNamed(f)),
    range: findRange(range) ? range : DEFAULT_RANGE,
    live: params.get("live") !== "0",
    zone: params.get("tz") === "utc" ? "utc" : "local",
  };
  if (unchecked.length > 0) view.unchecked = unchecked;
  Object.assign(view, parsePageParams(view.page, params));
  const panels = parsePanels(view.page, params);
  if (panels) view.panels = panels;
  if (from !== undefined && to !== undefined && from < to) {
    view.fixed = { from, to };
    view.live = false;
  }
  return view;
}

/** Formats the state as a query string without default values. */
export function formatView(view: ViewState): string {
  const params = new URLSearchParams();
  if (view.page !== DEFAULT_VIEW.page) params.set("page", view.page);
  for (const filter of sortFilters([...allFilters(view), ...(view.unchecked ?? []), ...(view.refused ?? [])])) params.append(parameter(filter), filter.text);
  if (view.range !== DEFAULT_RANGE) params.set("range", view.range);
  if (view.fixed) {
    params.set("from", formatUrlTime(view.fixed.from));
    params.set("to", formatUrlTime(view.fixed.to));
  } else if (!view.live) {
    params.set("live", "0");
  }
  if (view.zone !== DEFAULT_VIEW.zone) params.set("tz", view.zone);
  formatPageParams(view.page, view, params);
  formatPanels(view.page, view.panels, params);
  // Colons are legal in a query and far easier to read.
  const text = params.toString().replaceAll("%3A", ":");
  return text === "" ? "/" : `/?${text}`;
}

/** Adds or removes a filter. */
export function toggleFilter(view: ViewState, filter: Filter): ViewState {
  if (isNamed(filter)) return toggleWorkload(view, filter.text);
  const rest = view.filters.filter((other) => !sameFilter(other, filter));
  const filters = rest.length < view.filters.length ? rest : sortFilters([...view.filters, filter]);
  return allFilters({ ...view, filters }).length > MOST_FILTERS ? view : { ...view, filters };
}

/**
 * Returns the change of the view to a workload's page. It selects the workload, and its machine if given; otherwise
 * the filter of nodes stays.
 */
export function oneWorkload(view: Pick<ViewState, "filters">, name: string, node: string): Pick<ViewState, "page" | "workloads" | "filters"> {
  return { page: "workload", workloads: [name], filters: node === "" ? ofKind(view.filters, "node") : [{ kind: "node", text: node, regex: false }] };
}

export function clearFilters(view: ViewState): ViewState {
  return { ...view, workloads: [], filters: [], unchecked: undefined, refused: undefined };
}

/** The server's answers about patterns: the reason why it refuses one, or "" for a valid one. */
type Checked = ReadonlyMap<string, string>;

/** Moves checked patterns to the filters or to the refused ones. */
export function applyChecks(view: ViewState, checked: Checked): ViewState {
  const { unchecked = [], refused = [], ...rest } = view;
  const problemOf = ({ text }: Filter): string | undefined =>
    text.length > LONGEST_PATTERN ? `longer than ${LONGEST_PATTERN} characters` : checked.get(text);
  const left = unchecked.filter((f) => problemOf(f) === undefined);
  const wrong = [...refused, ...unchecked.flatMap((f) => (problemOf(f) ? [{ ...f, problem: problemOf(f) ?? "" }] : []))];
  return {
    ...rest,
    filters: sortFilters([...view.filters, ...unchecked.filter((f) => problemOf(f) === "")]),
    ...(left.length > 0 ? { unchecked: left } : {}),
    ...(wrong.length > 0 ? { refused: wrong } : {}),
  };
}

/** Removes a pattern of the address that is not in force. */
export function dropPattern(view: ViewState, filter: Filter): ViewState {
  const without = <T extends Filter>(list: readonly T[] | undefined): T[] | undefined => {
    const rest = (list ?? []).filter((other) => !sameFilter(other, filter));
    return rest.length > 0 ? rest : undefined;
  };
  return { ...view, unchecked: without(view.unchecked), refused: without(view.refused) };
}

/** Adds or removes a workload. */
export function toggleWorkload(view: ViewState, name: string): ViewState {
  const workloads = view.workloads.includes(name)
    ? view.workloads.filter((other) => other !== name)
    : [...view.workloads, name].sort();
  return { ...view, workloads };
}
