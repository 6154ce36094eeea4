// SPDX-License-Identifier: Apache-2.0

// Explains why the server refused a query: the position in the text, and advice. Pure.
import { AGGREGATIONS, FUNCTIONS } from "../../lib/promql-complete";

interface Refusal {
  /** The server's message without its preamble. */
  problem: string;
  advice: string;
  /** The line of the query and the column of the error; absent where the server gave none. */
  at?: { line: string; column: number };
}

const PLACED = /(\d+):(\d+): parse error: ([\s\S]*)$/;

/** Parses the message of an ApiError of the kind "query". */
export function explainRefusal(message: string, expr: string): Refusal {
  const [, lineNumber, columnNumber, said] = PLACED.exec(message) ?? [];
  if (said === undefined) {
    const problem = message.replace(/^The server refused the query \([^)]*\): /, "").replace(/^invalid parameter "query": /, "");
    return { problem, advice: adviceFor(problem) };
  }
  const line = expr.split("\n")[Number(lineNumber) - 1] ?? "";
  return { problem: said, advice: adviceFor(said), at: { line, column: characters(line, Number(columnNumber) - 1) } };
}

/** Converts bytes of UTF-8, which the server counts, into characters. The position may be just past the end. */
function characters(line: string, bytes: number): number {
  let left = bytes;
  let count = 0;
  for (const c of line) {
    left -= new TextEncoder().encode(c).length;
    if (left < 0) break;
    count++;
  }
  return count;
}

const ADVICE: readonly [RegExp, string | ((match: RegExpExecArray) => string)][] = [
  [/expected type range vector.*got instant vector/, "The function needs a range: write one after the selector, such as [1m]."],
  [/expected type instant vector.*got range vector|range vector" for range query/, "A range such as [1m] must be inside a function: rate(…[1m]), or max_over_time(…[1m])."],
  [/unclosed left parenthesis/, "A parenthesis is open: close it with )."],
  [/unclosed left brace|in label matching/, "Matchers are written {label=\"value\"}, with commas between them; operators are =, !=, =~ and !~."],
  [/unterminated quoted string|unterminated raw string/, "A quote is open: close the text with the same quote."],
  [/unknown function with name "(\w+)"/, (match) => unknownFunction(match[1] ?? "")],
  [/grouping opts/, "Put the labels to group by in parentheses: sum by (workload) (…)."],
  [/missing unit character|bad (number or )?duration|not a valid duration/, "A duration needs a unit: 30s, 5m, 1h or 1d."],
  [/unexpected end of input/, "Something is missing at the end, such as an operand or a closing bracket."],
  [/many-to-many|found duplicate series|multiple matches/, "Both sides have several series with the same labels: say which labels match with on (…) or ignoring (…), or add up one side first."],
  [/at least one non-empty matcher|must contain at least one/, "A selector needs a metric's name, or a matcher that excludes the empty text."],
  [/error parsing regexp/, "Regular expressions are RE2: without look-around or back references, and anchored at both ends."],
  [/too many samples|timed? ?out|deadline/, "The query reads too much data: choose a shorter time range, or select fewer series."],
];

function adviceFor(problem: string): string {
  for (const [pattern, advice] of ADVICE) {
    const match = pattern.exec(problem);
    if (match) return typeof advice === "string" ? advice : advice(match);
  }
  return "The server could not parse the query from this position on.";
}

function unknownFunction(name: string): string {
  const near = nearest(name.toLowerCase(), [...FUNCTIONS, ...AGGREGATIONS]);
  return near === undefined ? "PromQL has no such function. Type a letter to see the functions that exist." : `PromQL has no such function. Did you mean ${near}?`;
}

/** Returns the word with the smallest edit distance, if it is small. */
function nearest(word: string, among: readonly string[]): string | undefined {
  const best = among.map((other) => ({ other, changes: changesBetween(word, other) })).sort((a, b) => a.changes - b.changes)[0];
  return best && best.changes <= Math.max(1, Math.floor(word.length / 3)) ? best.other : undefined;
}

/** Levenshtein distance. */
function changesBetween(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a.charAt(i - 1) === b.charAt(j - 1) ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
