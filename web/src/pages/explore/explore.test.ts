// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { explainRefusal } from "./advice";
import { MOST_ROWS, nameSeries, tableOf } from "./series";

const refused = (said: string): string => `The server refused the query (400 bad_data): invalid parameter "query": ${said}`;

describe("a refusal", () => {
  it("is shown at its place, without its preamble", () => {
    const message = refused('1:6: parse error: expected type range vector in call to function "rate", got instant vector');
    expect(explainRefusal(message, "rate(up)")).toMatchObject({
      problem: 'expected type range vector in call to function "rate", got instant vector',
      at: { line: "rate(up)", column: 5 },
    });
  });

  it("finds the line, and counts characters where the server counts bytes", () => {
    expect(explainRefusal(refused("2:3: parse error: x"), "a +\nb )").at).toEqual({ line: "b )", column: 2 });
    expect(explainRefusal(refused("1:10: parse error: x"), '1 + "é" )').at?.column).toBe(8);
    expect(explainRefusal(refused("1:99: parse error: x"), "up").at?.column).toBe(2); // just past the end
    expect(explainRefusal(refused("9:1: parse error: x"), "up").at).toEqual({ line: "", column: 0 });
  });

  it.each([
    ['1:1: parse error: unknown function with name "rat"', /Did you mean rate/],
    ['1:1: parse error: unknown function with name "frobnicate"', /no such function/],
    ["1:5: parse error: unclosed left parenthesis", /close it/],
    ['invalid expression type "range vector" for range query, must be Scalar or instant Vector', /inside a function/],
    ["found duplicate series for the match group {} on the right hand-side", /on \(/],
    ["something new", /from this position on/],
  ])("of %s has advice", (said, want) => {
    expect(explainRefusal(refused(said), "x").advice).toMatch(want);
  });
});

describe("the names of series", () => {
  it("are made of the labels that differ", () => {
    expect(nameSeries([{ a: "1", b: "x" }, { a: "2", b: "x" }], "q")).toEqual(["1", "2"]);
    expect(nameSeries([{ a: "1", b: "x" }, { a: "2", b: "y" }, { a: "2" }], "q")).toEqual(["a=1, b=x", "a=2, b=y", "a=2"]);
    expect(nameSeries([{ __name__: "m", a: "1" }, { __name__: "n", a: "2" }], "q")).toEqual(["m (a=1)", "n (a=2)"]);
    expect(nameSeries([{ a: "1" }, {}], "q")).toEqual(["1", "(no a)"]);
  });

  it("of a single series are all its labels, or the query", () => {
    expect(nameSeries([{ __name__: "m", a: "1" }], "q")).toEqual(["m (a=1)"]);
    expect(nameSeries([{}], "sum(m)")).toEqual(["sum(m)"]);
  });
});

describe("a table", () => {
  it("sorts descending with NaN last, and is limited", () => {
    const sample = (a: string, v: number): { metric: Record<string, string>; value: [number, number] } => ({ metric: { a }, value: [0, v] });
    expect(tableOf([sample("x", 1), sample("n", NaN), sample("y", 3)]).rows.map((r) => r.labels[0])).toEqual(["y", "x", "n"]);
    const many = tableOf(Array.from({ length: MOST_ROWS + 7 }, (_, i) => sample(String(i), i)));
    expect([many.rows.length, many.leftOut]).toEqual([MOST_ROWS, 7]);
  });
});
