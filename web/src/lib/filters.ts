// SPDX-License-Identifier: Apache-2.0

// The filters: what may be shown. Those of one kind are alternatives, kinds
// restrict each other. Workloads that are chosen by name are in the view
// itself; this knows the other kinds, and workloads by pattern.

export const KINDS = ["workload", "container", "pod", "runtime", "node"] as const;
export type Kind = (typeof KINDS)[number];

/** Kinds that no figure is labelled with: info families say which workloads they mean. */
const MAPPED = ["container", "pod", "runtime"] as const satisfies readonly Kind[];

export interface Filter {
  kind: Kind;
  /** A name, or a regular expression (RE2) that the whole name has to match. */
  text: string;
  regex: boolean;
}

/** A pattern that the server refuses. */
export interface Refused extends Filter {
  /** The reason, in the words of the server. */
  problem: string;
}

/** A link with more than this is cut: it was not made by hand. */
export const MOST_FILTERS = 64;

/** Longer patterns are refused without asking the server: no person typed them. */
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

/** Escapes what RE2 takes for a metacharacter. */
function escapeRegex(text: string): string {
  return text.replace(/[\\.+*?()|[\]{}^$]/g, "\\$&");
}

/** The matcher for any of several filters of one kind; none is no matcher. */
export function matcher(label: string, filters: readonly Pick<Filter, "text" | "regex">[]): string {
  const [first] = filters;
  if (first === undefined) return "";
  if (filters.length === 1) return `${label}${first.regex ? "=~" : "="}${quote(first.text)}`;
  // A pattern may have alternatives of its own, and flags that must not reach the next one.
  return `${label}=~${quote(filters.map((f) => (f.regex ? `(?:${f.text})` : escapeRegex(f.text))).join("|"))}`;
}

/** The matcher for one of these names: none of them is nothing at all. */
export function oneOf(label: string, names: readonly string[]): string {
  if (names.length === 0) return `${label}="",${label}!=""`;
  return matcher(label, names.map((text) => ({ text, regex: false })));
}

/** What the filters let through. */
export interface Chosen {
  /** Workloads chosen by name. */
  workloads: readonly string[];
  /** All other filters. */
  filters?: readonly Filter[];
  /** The workloads that the filters of containers, pods and runtimes leave; absent without such a filter. */
  mapped?: readonly string[] | undefined;
}

/**
 * The pattern for the browser, to show which names it matches. Undefined where the browser has no equivalent: its regular
 * expressions have another grammar than RE2. Whether a pattern is valid is for the server to say.
 */
export function browserRegex(pattern: string): RegExp | undefined {
  const [, flags = "", rest = ""] = /^(?:\(\?([is]+)\))?(.*)$/s.exec(pattern) ?? [];
  try {
    return new RegExp(`^(?:${rest.replace(/\(\?P</g, "(?<")})$`, `u${flags.includes("i") ? "i" : ""}s`);
  } catch {
    return undefined;
  }
}

/** Whether a filter means a name; undefined where the browser cannot judge its pattern. */
export function means({ text, regex }: Pick<Filter, "text" | "regex">, name: string): boolean | undefined {
  return regex ? browserRegex(text)?.test(name) : text === name;
}

/** Whether the filters let through what is of a workload (none: of a whole machine) on a node. What cannot be judged here is let through. */
export function passes({ workloads, filters = [], mapped }: Chosen, workload: string, instance: string): boolean {
  const any = (name: string, chosen: readonly Pick<Filter, "text" | "regex">[]): boolean => chosen.length === 0 || chosen.some((f) => means(f, name) ?? true);
  if (!any(instance, ofKind(filters, "node"))) return false;
  const named = workloads.map((text) => ({ text, regex: false }));
  return workload === "" || (any(workload, [...named, ...ofKind(filters, "workload")]) && (mapped?.includes(workload) ?? true));
}

export function ofKind(filters: readonly Filter[], kind: Kind): Filter[] {
  return filters.filter((f) => f.kind === kind);
}

/** Joins matchers, of which some are empty. */
export function join(...matchers: readonly string[]): string {
  return matchers.filter((m) => m !== "").join(",");
}

/**
 * For each kind that is chosen and has to be mapped, the selectors of the info
 * families whose series name the workloads that it means. The container
 * collector gives containers and pods the names that people use; without it,
 * and beyond its limit, the first digits of the container's ID and the pod's
 * are all that is known.
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
