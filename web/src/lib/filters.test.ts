// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { browserRegex, type Filter, mappings, matcher, oneOf, passes } from "./filters";

const filter = (kind: Filter["kind"], text: string, regex = false): Filter => ({ kind, text, regex });

describe("matcher", () => {
  it.each<[[string, boolean][], string]>([
    [[], ""],
    [[["h:1", false]], `x="h:1"`],
    [[["h.*", true]], `x=~"h.*"`],
    [[["\\d+", true]], `x=~"\\\\d+"`],
    [[["a.b", false], ["(?i)c|d", true], ['"', false]], `x=~"a\\\\.b|(?:(?i)c|d)|\\""`],
  ])("%j is %s", (given, want) => {
    expect(matcher("x", given.map(([text, regex]) => ({ text, regex })))).toBe(want);
  });

  it("is empty for an empty list of names", () => {
    expect(oneOf("x", [])).toBe(`x="",x!=""`);
    expect(oneOf("x", ["a"])).toBe(`x="a"`);
  });
});

describe("mappings", () => {
  it("needs no query without such a filter", () => {
    expect(mappings([filter("node", "h"), filter("workload", "a.*", true)])).toEqual([]);
  });

  it("selects info series of the chosen nodes by every name of a container", () => {
    expect(mappings([filter("container", "web"), filter("runtime", "gramine"), filter("node", "h:1")])).toEqual([
      {
        kind: "container",
        selectors: [
          `teescope_workload_info{container="web",instance="h:1"}`,
          `teescope_container_info{container="web",instance="h:1"}`,
          `teescope_container_info{name="web",instance="h:1"}`,
        ],
      },
      { kind: "runtime", selectors: [`teescope_workload_info{runtime="gramine",instance="h:1"}`] },
    ]);
  });
});

describe("passes", () => {
  const chosen = { workloads: ["a"], filters: [filter("workload", "b-\\d", true), filter("node", "h:1")], mapped: ["a", "b-1", "c"] };
  it.each([
    ["a", "h:1", true],
    ["b-1", "h:1", true],
    ["b-2", "h:1", false], // another runtime
    ["c", "h:1", false], // another workload
    ["a", "h:2", false],
    ["", "h:1", true], // the whole machine
    ["", "h:2", false],
  ])("%s on %s: %s", (workload, instance, want) => {
    expect(passes(chosen, workload, instance)).toBe(want);
  });

  it("lets through what the browser cannot judge", () => {
    expect(passes({ workloads: [], filters: [filter("workload", "[[:alpha:]]", true)] }, "a", "h")).toBe(true);
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
