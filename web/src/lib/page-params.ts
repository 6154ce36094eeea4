// SPDX-License-Identifier: Apache-2.0

// The part of the URL that belongs to single pages: what Compare compares and
// what Explore asks. Everything is bounded; what is not understood is left out.
import { parseDuration } from "./time";
import { isUnit, type Unit } from "./units";

export interface CompareParams {
  /** The workload on the one side; empty until one is chosen. */
  a: string;
  /** That on the other; the same as `a` compares two times of one. */
  b: string;
  /** The machine of each, where there are several; empty where it does not have to be said. */
  nodeA: string;
  nodeB: string;
  /** How many seconds earlier than A the time of B is. */
  offset: number;
  /** What to divide by: empty for nothing, or as lib/normalise.ts spells it. */
  per: string;
  /** The same for B where it is another one, such as the counter of the other server. */
  perB: string;
}

export const SHOWS = ["chart", "table"] as const;
export type ExploreShow = (typeof SHOWS)[number];

interface ExploreParams {
  /** PromQL, at most MOST_QUERIES. */
  exprs: readonly string[];
  /** Over the time range, or at its end. */
  show: ExploreShow;
  /** The unit of each query's values where a person chose one; empty where it is that of the query. */
  units?: readonly (Unit | "")[] | undefined;
}

export interface PageParams {
  compare?: CompareParams | undefined;
  explore?: ExploreParams | undefined;
}

export const NO_COMPARE: CompareParams = { a: "", b: "", nodeA: "", nodeB: "", offset: 0, per: "", perB: "" };
export const NO_EXPLORE: ExploreParams = { exprs: [], show: "chart" };
export const MOST_QUERIES = 4;
/** Characters of one query; the server refuses long addresses. */
export const LONGEST_QUERY = 4000;
const LONGEST_NAME = 300;

const cut = (text: string | null): string => (text ?? "").slice(0, LONGEST_NAME);

/** Reads the parameters of the page that is shown. */
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
  return {};
}

/** Adds the parameters of the page that is shown; those of other pages are not its address. */
export function formatPageParams(page: string, { compare, explore }: PageParams, params: URLSearchParams): void {
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
}

/** Leaves out the empty ones at the end. */
function withoutEnd<T extends string>(texts: readonly T[]): T[] {
  return texts.slice(0, texts.reduce((length, text, i) => (text === "" ? length : i + 1), 0));
}

/** A Prometheus duration in the greatest unit that is whole: 5400 is "90m". */
export function formatDuration(seconds: number): string {
  const whole = Math.round(seconds);
  for (const [unit, length] of [["d", 86_400], ["h", 3600], ["m", 60]] as const) {
    if (whole >= length && whole % length === 0) return `${whole / length}${unit}`;
  }
  return `${whole}s`;
}
