// SPDX-License-Identifier: Apache-2.0

// The URL parameters of single pages: the sides of Compare, the queries of Explore, the kept dashboard, and the chosen part of a profile.
// All are bounded. Invalid ones
// are ignored.
import { type Interval, parseDuration } from "./time";
import { isUnit, type Unit } from "./units";

export interface CompareParams {
  /** The workload on side A; empty until one is chosen. */
  a: string;
  /** The workload on side B. The same as `a` compares two times of one workload. */
  b: string;
  /** The machine of each side where there are several; empty where there is only one. */
  nodeA: string;
  nodeB: string;
  /** Seconds that the time of B lies before that of A. */
  offset: number;
  /** What to divide by, spelled as in lib/normalise.ts; empty divides by nothing. */
  per: string;
  /** The divisor of B where it differs, such as the counter of another server. */
  perB: string;
}

export const SHOWS = ["chart", "table"] as const;
export type ExploreShow = (typeof SHOWS)[number];

interface ExploreParams {
  /** PromQL, at most MOST_QUERIES. */
  exprs: readonly string[];
  /** Values over the time range, or at its end. */
  show: ExploreShow;
  /** The unit that the user chose for each query; empty for the inferred one. */
  units?: readonly (Unit | "")[] | undefined;
}

/** A span of time, and a thread in it. */
export interface ProfilePart extends Interval {
  pid: string;
  /** Empty for all threads. */
  tid: string;
}

export interface ProfileParams {
  /** The event of the samples, and the type of the value that is shown; CPU time and the usual value if absent. */
  event?: string | undefined;
  value?: string | undefined;
  /** The workload that the others are about; empty for all. While the page shows another one, they do not apply. */
  of: string;
  part?: ProfilePart | undefined;
  /** The time that is compared with the shown one; "before" is as much time before it. */
  base?: Interval | "before" | undefined;
}

export interface PageParams {
  compare?: CompareParams | undefined;
  explore?: ExploreParams | undefined;
  /** The ID of the kept dashboard that is shown. */
  board?: string | undefined;
  /** A pod, and the machine to which it would move. */
  move?: { pod: string; onto: string } | undefined;
  profile?: ProfileParams | undefined;
}

export const NO_COMPARE: CompareParams = { a: "", b: "", nodeA: "", nodeB: "", offset: 0, per: "", perB: "" };
export const NO_EXPLORE: ExploreParams = { exprs: [], show: "chart" };
export const MOST_QUERIES = 4;
/** Limit of a query's length. The server refuses long addresses. */
export const LONGEST_QUERY = 4000;
const LONGEST_NAME = 300;

const cut = (text: string | null): string => (text ?? "").slice(0, LONGEST_NAME);

/** Parses the parameters of the current page. */
export function parsePageParams(page: string, params: URLSearchParams): PageParams {
  if (page === "compare") {
    const compare = {
      a: cut(params.get("a")),
      b: cut(params.get("b")),
      nodeA: cut(params.get("anode")),
      nodeB: cut(params.get("bnode")),
      offset: parseDuration(params.get("offset") ?? "") ?? 0,
      per: cut(params.get("per")),
      perB: cut(params.get("perb")),
    };
    return Object.values(compare).some((value) => value !== "" && value !== 0) ? { compare } : {};
  }
  if (page === "explore") {
    const exprs = params
      .getAll("expr")
      .map((expr) => expr.slice(0, LONGEST_QUERY))
      .filter((expr) => expr.trim() !== "")
      .slice(0, MOST_QUERIES);
    const show = SHOWS.find((s) => s === params.get("show")) ?? NO_EXPLORE.show;
    const units = withoutEnd(params.getAll("unit").slice(0, exprs.length).map((text) => (isUnit(text) ? text : "")));
    return exprs.length > 0 || show !== NO_EXPLORE.show ? { explore: { exprs, show, ...(units.length > 0 ? { units } : {}) } } : {};
  }
  if (page === "fleet") {
    const move = { pod: cut(params.get("move")), onto: cut(params.get("onto")) };
    return move.pod + move.onto === "" ? {} : { move };
  }
  if (page === "profile") {
    const span = parseSpan(params.get("span"));
    const part = span && { ...span, pid: cut(params.get("pid")), tid: cut(params.get("tid")) };
    const base = params.get("base") === "before" ? "before" : parseSpan(params.get("base"));
    const event = cut(params.get("event"));
    const value = cut(params.get("value"));
    const profile: ProfileParams = { of: cut(params.get("w")), ...(event && { event }), ...(value && { value }), ...(part && { part }), ...(base && { base }) };
    return Object.keys(profile).length > 1 ? { profile } : {};
  }
  const board = page === "dashboards" ? cut(params.get("id")) : "";
  return board === "" ? {} : { board };
}

/** Adds the parameters of the current page. Those of other pages are not in its address. */
export function formatPageParams(page: string, { compare, explore, board, move, profile }: PageParams, params: URLSearchParams): void {
  if (page === "compare" && compare) {
    const { a, b, nodeA, nodeB, offset, per, perB } = compare;
    for (const [key, value] of Object.entries({ a, anode: nodeA, b, bnode: nodeB, offset: offset > 0 ? formatDuration(offset) : "", per, perb: perB })) {
      if (value !== "") params.set(key, value);
    }
  }
  if (page === "explore" && explore) {
    for (const expr of explore.exprs) params.append("expr", expr);
    if (explore.show !== NO_EXPLORE.show) params.set("show", explore.show);
    for (const unit of withoutEnd(explore.units ?? [])) params.append("unit", unit);
  }
  if (page === "dashboards" && board) params.set("id", board);
  if (page === "fleet" && move) {
    params.set("move", move.pod);
    params.set("onto", move.onto);
  }
  if (page === "profile") for (const key of ["event", "value"] as const) if (profile?.[key]) params.set(key, profile[key]);
  if (page === "profile" && profile && profile.of === cut(params.get("w"))) {
    const { part, base } = profile;
    if (part) {
      params.set("span", formatPoints(part));
      for (const key of ["pid", "tid"] as const) if (part[key] !== "") params.set(key, part[key]);
    }
    if (base) params.set("base", base === "before" ? base : formatPoints(base));
  }
}

/** Formats two points in time, in milliseconds at most. */
const formatPoints = ({ from, to }: Interval): string => [from, to].map((seconds) => Math.round(seconds * 1e3) / 1e3).join("~");

function parseSpan(text: string | null): Interval | undefined {
  const [from = NaN, to = NaN] = (text ?? "").split("~").map(Number);
  return from >= 0 && from < to && to < 1e11 ? { from, to } : undefined;
}

/** Removes empty texts at the end. */
function withoutEnd<T extends string>(texts: readonly T[]): T[] {
  return texts.slice(0, texts.reduce((length, text, i) => (text === "" ? length : i + 1), 0));
}

/** Formats a duration in its greatest whole unit: 5400 is "90m". */
export function formatDuration(seconds: number): string {
  const whole = Math.round(seconds);
  for (const [unit, length] of [["d", 86_400], ["h", 3600], ["m", 60]] as const) {
    if (whole >= length && whole % length === 0) return `${whole / length}${unit}`;
  }
  return `${whole}s`;
}
