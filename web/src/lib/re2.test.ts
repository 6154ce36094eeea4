// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { browserRegex, LONGEST_PATTERN, regexProblem } from "./re2";

/** Patterns and whether Go compiles them: web/re2_test.go holds Go to the same file. */
const cases = JSON.parse(readFileSync(new URL("re2-cases.json", import.meta.url), "utf8")) as [string, boolean][];

describe("regexProblem", () => {
  it.each(cases)("%s: %s", (pattern, good) => {
    expect(regexProblem(pattern)?.message ?? "good").toEqual(good ? "good" : expect.not.stringMatching(/^good$/));
  });

  it.each([
    ["a(b|c", 1, "not closed"],
    ["ab)c", 2, "closes nothing"],
    ["redis-*|*", 8, "write .* for anything"],
    ["x[z-a]", 2, "z-a is the wrong way round"],
    ["ab[cd", 2, "not closed"],
    ["a\\", 1, "backslash at the end"],
    ["(a)\\1", 3, "refer back"],
    ["a(?=b)", 1, "look ahead"],
    ["ab{3,2}", 2, "impossible"],
    ["a".repeat(LONGEST_PATTERN + 1), LONGEST_PATTERN, "longer than"],
  ])("says where %s is wrong", (pattern, at, message) => {
    const problem = regexProblem(pattern);
    expect(problem?.at).toBe(at);
    expect(problem?.message).toContain(message);
  });
});

describe("browserRegex", () => {
  it("matches whole names, as the database does", () => {
    expect(browserRegex("redis")?.test("redis-server")).toBe(false);
    expect(browserRegex("redis|nginx.*")?.test("nginx-1")).toBe(true);
    expect(browserRegex("(?i)REDIS.*")?.test("redis-server")).toBe(true);
    expect(browserRegex("(?P<n>a)b")?.test("ab")).toBe(true);
    expect(browserRegex("[[:alpha:]]+\\z")).toBeUndefined();
  });
});
