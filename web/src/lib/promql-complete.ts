// SPDX-License-Identifier: Apache-2.0

// What can be completed at the cursor of a PromQL query, and how it is inserted. Pure; the caller gives the names.

/** What the cursor is in. `from` is the start of the word that is completed. */
export type Context =
  /** A metric, function or aggregation. */
  | { kind: "name"; from: number; word: string }
  /** A label within braces (`metric` is the name before them, if there is one) or in a grouping. */
  | { kind: "label"; from: number; word: string; metric: string; grouping: boolean }
  /** The value of a label. */
  | { kind: "value"; from: number; word: string; metric: string; label: string }
  | { kind: "duration"; from: number; word: string }
  /** Nothing to offer: a number, a string, a comment. */
  | { kind: "none"; from: number; word: string };

const GROUPINGS = new Set(["by", "without", "on", "ignoring", "group_left", "group_right"]);

export const AGGREGATIONS = [
  "avg", "bottomk", "count", "count_values", "group", "max", "min", "quantile", "stddev", "stdvar", "sum", "topk",
];

export const FUNCTIONS = [
  "abs", "absent", "absent_over_time", "avg_over_time", "ceil", "changes", "clamp", "clamp_max", "clamp_min", "count_over_time",
  "delta", "deriv", "exp", "floor", "histogram_avg", "histogram_count", "histogram_fraction", "histogram_quantile", "histogram_sum",
  "idelta", "increase", "irate", "label_join", "label_replace", "last_over_time", "ln", "log10", "log2", "max_over_time",
  "min_over_time", "minute", "predict_linear", "present_over_time", "quantile_over_time", "rate", "resets", "round", "scalar",
  "sgn", "sort", "sort_desc", "sqrt", "stddev_over_time", "sum_over_time", "time", "timestamp", "vector",
];

/** Words between operands. */
const KEYWORDS = ["by", "without", "on", "ignoring", "group_left", "group_right", "and", "or", "unless", "bool", "offset"];

const DURATIONS = ["10s", "30s", "1m", "5m", "15m", "1h", "6h", "1d"];

interface Open {
  bracket: "{" | "(" | "[";
  /** The name before the bracket. */
  before: string;
  /** The label whose matcher contains the cursor. */
  label: string;
}

/** Parses the query up to the cursor. */
export function contextOf(text: string, cursor: number): Context {
  const open: Open[] = [];
  let name = "";
  let i = 0;
  while (i < cursor) {
    const c = text.charAt(i);
    const top = open.at(-1);
    if (c === "#") {
      const end = text.indexOf("\n", i);
      if (end < 0 || end >= cursor) return none(cursor);
      i = end + 1;
    } else if (c === '"' || c === "'" || c === "`") {
      const end = closing(text, i, c);
      if (end >= cursor) {
        const isValue = top?.bracket === "{" && top.label !== "" && /(=|!=|=~|!~)\s*$/.test(text.slice(0, i));
        if (!isValue) return none(cursor);
        return { kind: "value", from: i + 1, word: text.slice(i + 1, cursor), metric: top.before, label: top.label };
      }
      i = end + 1;
    } else if (/[a-zA-Z_:]/.test(c)) {
      const word = /^[\w:]+/.exec(text.slice(i))?.[0] ?? c;
      if (i + word.length >= cursor) return contextOfWord(top, i, text.slice(i, cursor));
      name = word;
      if (top?.bracket === "{") top.label = word;
      i += word.length;
      continue; // keeps the name before a bracket
    } else if (/\d/.test(c)) {
      const word = /^[\w.]+/.exec(text.slice(i))?.[0] ?? c;
      if (i + word.length >= cursor) return top?.bracket === "[" ? { kind: "duration", from: i, word: text.slice(i, cursor) } : none(cursor);
      i += word.length;
      name = "";
    } else {
      if (c === "{" || c === "(" || c === "[") open.push({ bracket: c, before: name, label: "" });
      else if (c === "}" || c === ")" || c === "]") open.pop();
      else if (c === "," && top) top.label = "";
      if (!/\s/.test(c)) name = "";
      i++;
    }
  }
  return contextOfWord(open.at(-1), cursor, "");
}

function none(cursor: number): Context {
  return { kind: "none", from: cursor, word: "" };
}

function contextOfWord(top: Open | undefined, from: number, word: string): Context {
  if (top?.bracket === "[") return { kind: "duration", from, word };
  if (top?.bracket === "{") return top.label === "" ? { kind: "label", from, word, metric: top.before, grouping: false } : none(from + word.length);
  if (top?.bracket === "(" && GROUPINGS.has(top.before)) return { kind: "label", from, word, metric: "", grouping: true };
  return { kind: "name", from, word };
}

/** Returns the index of the quote that closes the one at `start`, or the length of the text. */
function closing(text: string, start: number, quote: string): number {
  for (let i = start + 1; i < text.length; i++) {
    if (text.charAt(i) === "\\" && quote !== "`") i++;
    else if (text.charAt(i) === quote) return i;
  }
  return Infinity;
}

export interface Suggestion {
  text: string;
  /** The kind of name: "counter", "function", "label", ... */
  about: string;
}

/** Maximum number of suggestions. */
export const MOST_SUGGESTIONS = 30;

/** Orders suggestions: names that begin with the word, names with a part that does, names that contain it. */
export function rank(all: readonly Suggestion[], word: string): Suggestion[] {
  const wanted = word.toLowerCase();
  const score = ({ text }: Suggestion): number => {
    const low = text.toLowerCase();
    if (low.startsWith(wanted)) return 0;
    const at = low.indexOf(wanted);
    if (at < 0) return -1;
    return /[_:.\-/]/.test(low.charAt(at - 1)) ? 1 : 2;
  };
  return all
    .map((suggestion) => ({ suggestion, score: score(suggestion) }))
    .filter((entry) => entry.score >= 0)
    .sort((a, b) => a.score - b.score || (a.suggestion.text < b.suggestion.text ? -1 : 1))
    .slice(0, MOST_SUGGESTIONS)
    .map((entry) => entry.suggestion);
}

const WORDS: readonly Suggestion[] = [
  ...AGGREGATIONS.map((text) => ({ text, about: "aggregation" })),
  ...FUNCTIONS.map((text) => ({ text, about: "function" })),
  ...KEYWORDS.map((text) => ({ text, about: "keyword" })),
];

/** Returns the suggestions in a context. `known` are names of the server: metrics, labels or values. */
export function suggest(context: Context, known: readonly Suggestion[]): Suggestion[] {
  switch (context.kind) {
    case "name":
      return context.word === "" ? [] : rank([...known, ...WORDS], context.word);
    case "duration":
      return DURATIONS.filter((text) => text.startsWith(context.word)).map((text) => ({ text, about: "duration" }));
    case "label":
    case "value":
      return rank(known, context.word);
    case "none":
      return [];
  }
}

interface Edit {
  text: string;
  cursor: number;
}

/** Replaces the word at the cursor by a suggestion and adds what must follow it. */
export function complete(text: string, cursor: number, context: Context, chosen: Suggestion): Edit {
  const before = text.slice(0, context.from);
  const after = text.slice(cursor).replace(/^[\w:]+/, "");
  const put = (inserted: string, follows: string): Edit => {
    const rest = follows !== "" && after.startsWith(follows) ? after.slice(follows.length) : after;
    return { text: before + inserted + follows + rest, cursor: before.length + inserted.length + follows.length };
  };
  switch (context.kind) {
    case "value":
      return { ...put(chosen.text.replace(/[\\"]/g, "\\$&").replace(/\n/g, "\\n"), text.charAt(context.from - 1)) };
    case "label":
      return context.grouping ? put(chosen.text, "") : put(chosen.text, after.startsWith("=") || after.startsWith("!") ? "" : '="');
    case "duration":
      return put(chosen.text, "]");
    default:
      return put(chosen.text, chosen.about === "function" ? "(" : "");
  }
}
