// SPDX-License-Identifier: Apache-2.0

// The filters. Filters of one kind are alternatives, kinds restrict each other. Workloads chosen by name are in the
// view itself. This module has the other kinds, and workloads by pattern.

export const KINDS = ["workload", "container", "pod", "runtime", "node"] as const;
export type Kind = (typeof KINDS)[number];

/** Kinds that are not the label of a value. Info families say which workloads they have. */
const MAPPED = ["container", "pod", "runtime"] as const satisfies readonly Kind[];

export interface Filter {
  kind: Kind;
  /** A name, or a regular expression (RE2) that must match the whole name. */
  text: string;
  regex: boolean;
}

/** A pattern that the server refuses. */
export interface Refused extends Filter {
  /** The reason of the server. */
  problem: string;
}

/** Limit of filters in an address. Further ones are dropped. */
export const MOST_FILTERS = 64;

/** Limit of a pattern's length. Longer ones are refused without a request. */
export const LONGEST_PATTERN = 500;

export function sameFilter(a: Filter, b: Filter): boolean {
  return a.kind === b.kind && a.text === b.text && a.regex === b.regex;
}

/** The order of chips and of the URL: by kind, names before patterns, by text. */
export function sortFilters(filters: readonly Filter[]): Filter[] {
  const rank = (f: Filter): number => 2 * KINDS.indexOf(f.kind) + Number(f.regex);
  return [...filters].sort((a, b) => rank(a) - rank(b) || (a.text < b.text ? -1 : Number(a.text > b.text)));
}

/** Quotes a string for a PromQL matcher. */
export function quote(text: string): string {
  return `"${text.replace(/[\\"]/g, "\\$&").replace(/\n/g, "\\n")}"`;
}

/** Escapes the metacharacters of RE2. */
function escapeRegex(text: string): string {
  return text.replace(/[\\.+*?()|[\]{}^$]/g, "\\$&");
}

/** Returns the matcher for any of several filters of one kind. Without a filter it is empty. */
export function matcher(label: string, filters: readonly Pick<Filter, "text" | "regex">[]): string {
  const [first] = filters;
  if (first === undefined) return "";
  if (filters.length === 1) return `${label}${first.regex ? "=~" : "="}${quote(first.text)}`;
  // Each pattern gets a group, because it may have alternatives and flags.
  return `${label}=~${quote(filters.map((f) => (f.regex ? `(?:${f.text})` : escapeRegex(f.text))).join("|"))}`;
}

/** Returns the matcher for one of these names. Without a name it matches nothing. */
export function oneOf(label: string, names: readonly string[]): string {
  if (names.length === 0) return `${label}="",${label}!=""`;
  return matcher(label, names.map((text) => ({ text, regex: false })));
}

/** The chosen filters. */
export interface Chosen {
  /** Workloads chosen by name. */
  workloads: readonly string[];
  /** All other filters. */
  filters?: readonly Filter[];
  /** The workloads of the filters of containers, pods and runtimes; absent without such a filter. */
  mapped?: readonly string[] | undefined;
}

/**
 * Translates a pattern for the browser, to show which names it matches. It is undefined where the browser has no
 * equivalent, because JavaScript and RE2 have different grammars. Only the server decides whether a pattern is valid.
 */
export function browserRegex(pattern: string): RegExp | undefined {
  const [, flags = "", rest = ""] = /^(?:\(\?([is]+)\))?(.*)$/s.exec(pattern) ?? [];
  try {
    return new RegExp(`^(?:${rest.replace(/\(\?P</g, "(?<")})$`, `u${flags.includes("i") ? "i" : ""}s`);
  } catch {
    return undefined;
  }
}

/** Reports whether a filter matches a name; undefined where the browser cannot evaluate its pattern. */
export function means({ text, regex }: Pick<Filter, "text" | "regex">, name: string): boolean | undefined {
  return regex ? browserRegex(text)?.test(name) : text === name;
}

/**
 * Reports whether the filters include a workload (empty: the whole machine) on a node. A pattern that cannot be
 * evaluated here includes everything.
 */
export function passes({ workloads, filters = [], mapped }: Chosen, workload: string, instance: string): boolean {
  const any = (name: string, chosen: readonly Pick<Filter, "text" | "regex">[]): boolean => chosen.length === 0 || chosen.some((f) => means(f, name) ?? true);
  if (!any(instance, ofKind(filters, "node"))) return false;
  const named = workloads.map((text) => ({ text, regex: false }));
  return workload === "" || (any(workload, [...named, ...ofKind(filters, "workload")]) && (mapped?.includes(workload) ?? true));
}

export function ofKind(filters: readonly Filter[], kind: Kind): Filter[] {
  return filters.filter((f) => f.kind === kind);
}

/** Joins the matchers that are not empty. */
export function join(...matchers: readonly string[]): string {
  return matchers.filter((m) => m !== "").join(",");
}

/**
 * Returns the selectors of info series that name the workloads of each chosen kind that is not a label of values. The
 * container collector knows the names of containers and pods. Without it, and beyond its limit, only the first digits
 * of the container's ID and the pod's are known.
 */
export function mappings(filters: readonly Filter[]): { kind: Kind; selectors: string[] }[] {
  const node = matcher("instance", ofKind(filters, "node"));
  return MAPPED.flatMap((kind) => {
    const chosen = ofKind(filters, kind);
    if (chosen.length === 0) return [];
    const info = (family: string, label: string): string => `${family}{${join(matcher(label, chosen), node)}}`;
    const selectors: string[] = [info("teescope_workload_info", kind)];
    if (kind !== "runtime") selectors.push(info("teescope_container_info", kind));
    if (kind === "container") selectors.push(info("teescope_container_info", "name"));
    return [{ kind, selectors }];
  });
}
