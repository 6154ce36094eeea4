// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { complete, MOST_SUGGESTIONS, contextOf, rank, suggest } from "./promql-complete";

/** Splits a query at the bar, which marks the cursor. */
function at(marked: string): [string, number] {
  const cursor = marked.indexOf("|");
  return [marked.replace("|", ""), cursor];
}

describe("contextOf", () => {
  it.each([
    ["ra|", { kind: "name", word: "ra" }],
    ["|", { kind: "name", word: "" }],
    ["sum(tees|", { kind: "name", word: "tees" }],
    ["a + b|", { kind: "name", word: "b" }],
    ["x{wo|", { kind: "label", word: "wo", metric: "x", grouping: false }],
    ["x{a=\"1\", b|", { kind: "label", word: "b", metric: "x", grouping: false }],
    ["{|", { kind: "label", word: "", metric: "", grouping: false }],
    ['x{a="|', { kind: "value", word: "", metric: "x", label: "a" }],
    ['x{a="1",b=~"re|', { kind: "value", word: "re", metric: "x", label: "b" }],
    ["x{a='q\"|", { kind: "value", word: 'q"', metric: "x", label: "a" }],
    ["sum by (wo|", { kind: "label", word: "wo", metric: "", grouping: true }],
    ["a / on (in|", { kind: "label", word: "in", metric: "", grouping: true }],
    ["rate(x[|", { kind: "duration", word: "" }],
    ["rate(x[5|", { kind: "duration", word: "5" }],
    ["rate(x[5m])|", { kind: "name", word: "" }],
    ["x # com|", { kind: "none" }],
    ["x # a comment\n+ y|", { kind: "name", word: "y" }],
    ['label_replace(x, "a|', { kind: "none" }],
    ["x{a|} + y", { kind: "label", word: "a", metric: "x" }],
    ["x > 10|", { kind: "none" }],
    ["x{a=\"\\\"|", { kind: "value", word: '\\"' }],
  ])("knows where the cursor is in %s", (marked, want) => {
    expect(contextOf(...at(marked))).toMatchObject(want);
  });

  it("ends for any input", () => {
    for (const text of ["}}}", "]])", '"', "x{a=", "((((", "{{{{", "`\\", "ü{ä=\"", "\u0000", "[5", "#"]) {
      for (let cursor = 0; cursor <= text.length; cursor++) expect(contextOf(text, cursor).from).toBeLessThanOrEqual(cursor);
    }
  });
});

describe("suggestions", () => {
  const metrics = ["up", "teescope_syscalls_total", "teescope_syscall_seconds_total", "scrape_duration_seconds"].map((text) => ({ text, about: "counter" }));

  it("put what begins with the word first, then what has a part that does", () => {
    expect(rank(metrics, "s").map((s) => s.text)).toEqual(["scrape_duration_seconds", "teescope_syscall_seconds_total", "teescope_syscalls_total"]);
    expect(rank(metrics, "xyz")).toEqual([]);
  });

  it("are bounded", () => {
    const many = Array.from({ length: 5000 }, (_, i) => ({ text: `m_${i}`, about: "metric" }));
    expect(rank(many, "m")).toHaveLength(MOST_SUGGESTIONS);
  });

  it("contain functions and metrics, and nothing before the first letter", () => {
    expect(suggest(contextOf("ra", 2), metrics)[0]).toEqual({ text: "rate", about: "function" });
    expect(suggest(contextOf("", 0), metrics)).toEqual([]);
    expect(suggest(contextOf("x[1", 3), metrics).map((s) => s.text)).toEqual(["10s", "1m", "15m", "1h", "1d"]);
  });
});

describe("complete", () => {
  const take = (marked: string, text: string, about = "metric"): string => {
    const [query, cursor] = at(marked);
    const edit = complete(query, cursor, contextOf(query, cursor), { text, about });
    return `${edit.text.slice(0, edit.cursor)}|${edit.text.slice(edit.cursor)}`;
  };

  it.each([
    ["ra|", "rate", "function", "rate(|"],
    ["ra|(x)", "rate", "function", "rate(|x)"],
    ["sum(te|)", "teescope_x", "metric", "sum(teescope_x|)"],
    ["sum(te|e_old)", "teescope_x", "metric", "sum(teescope_x|)"],
    ["x{wo|}", "workload", "label", 'x{workload="|}'],
    ['x{wo|="a"}', "workload", "label", 'x{workload|="a"}'],
    ["sum by (wo|) (x)", "workload", "label", "sum by (workload|) (x)"],
    ['x{a="re|}', "redis", "value", 'x{a="redis"|}'],
    ['x{a="re|"}', "redis", "value", 'x{a="redis"|}'],
    ['x{a="|"}', 'say "no"\\', "value", 'x{a="say \\"no\\"\\\\"|}'],
    ["rate(x[|", "5m", "duration", "rate(x[5m]|"],
    ["rate(x[5|])", "5m", "duration", "rate(x[5m]|)"],
  ])("turns %s with %s (%s) into %s", (marked, text, about, want) => {
    expect(take(marked, text, about)).toBe(want);
  });
});

