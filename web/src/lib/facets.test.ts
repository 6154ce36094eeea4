// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { choicesOf, inside, matching } from "./facets";
import type { Filter, Kind } from "./filters";

const workload = (name: string, more: Record<string, string> = {}) => ({
  __name__: "teescope_workload_info", instance: "a:1", workload: name, container: "", pod: "", runtime: "", ...more,
});
const container = (name: string, more: Record<string, string>) => ({
  __name__: "teescope_container_info", instance: "a:1", workload: name, container: name, pod: "", ...more,
});

describe("choicesOf", () => {
  const choices = choicesOf([
    workload("idle"),
    workload("redis", { runtime: "gramine" }),
    workload("redis", { instance: "b:1" }),
    workload("e5e5", { container: "e5e5" }),
    container("e5e5", { name: "cache" }),
    workload("b2b2", { container: "b2b2", pod: "0a1b-uid" }),
    container("b2b2", { name: "b2b2b2b2", container: "app", pod: "shop-1" }),
    container("f6f6", { name: "f6f6f6f6", container: "app", pod: "shop-2" }),
    container("a1a1", { name: "a1a1a1a1", container: "POD", pod: "shop-1" }),
    workload("unnamed", { container: "d4d4", pod: "uid-2" }),
  ]);

  it("has the names that people use, and how many workloads they mean", () => {
    expect(choices.workload).toEqual([
      { name: "b2b2", count: 1, total: 1 },
      { name: "e5e5", count: 1, total: 1 },
      { name: "redis", count: 2, total: 2 },
      { name: "unnamed", count: 1, total: 1 },
    ]);
    expect(choices.container).toEqual([
      { name: "app", count: 2, total: 2 },
      { name: "cache", count: 1, total: 1 },
      { name: "d4d4", count: 1, total: 1 },
    ]);
    expect(choices.pod.map((c) => c.name)).toEqual(["shop-1", "shop-2", "uid-2"]);
    expect(choices.runtime).toEqual([{ name: "gramine", count: 1, total: 1 }]);
    expect(choices.node).toEqual([
      { name: "a:1", count: 7, total: 7 },
      { name: "b:1", count: 1, total: 1 },
    ]);
  });

  it("finds words in any order, with what was chosen first", () => {
    const names = (search: string): string[] => matching(choices.pod, ["gone", "uid-2"], search).map((c) => c.name);
    expect(names("")).toEqual(["gone", "uid-2", "shop-1", "shop-2"]);
    expect(names("2 SHOP")).toEqual(["shop-2"]);
  });
});

describe("choices within the other filters", () => {
  const series = [
    workload("redis", { runtime: "gramine" }),
    workload("redis", { instance: "b:1", container: "c0c0", pod: "uid-9" }),
    { ...container("redis", { name: "c0c0c0c0", container: "cache", pod: "shop-1" }), instance: "b:1" },
    workload("nginx", { runtime: "gramine", instance: "b:1" }),
    workload("cron"),
  ];
  const f = (kind: Kind, text: string, regex = false): Filter => ({ kind, text, regex });
  const left = (kind: Kind, ...filters: Filter[]): string[] => inside(choicesOf(series, filters)[kind]).map((c) => `${c.name} ${c.count}/${c.total}`);

  it.each<[string, Kind, Filter[], string[]]>([
    ["nothing is narrowed without one", "workload", [], ["cron 1/1", "nginx 1/1", "redis 2/2"]],
    ["another kind narrows", "workload", [f("container", "cache")], ["redis 1/2"]],
    ["its own kind does not", "container", [f("container", "cache")], ["cache 1/1"]],
    ["nor does its own pattern", "workload", [f("workload", "r.*", true)], ["cron 1/1", "nginx 1/1", "redis 2/2"]],
    ["kinds combine on one machine", "workload", [f("runtime", "gramine"), f("node", "b:1")], ["nginx 1/1"]],
    ["a pattern counts", "runtime", [f("workload", "redis|cron", true)], ["gramine 1/2"]],
    ["those of one kind are alternatives", "node", [f("workload", "cron"), f("container", "cache"), f("container", "x")], []],
    ["an ID means what its name means", "pod", [f("container", "c0c0")], ["shop-1 1/1"]],
    ["and so does the ID of a pod", "container", [f("pod", "uid-9")], ["cache 1/1"]],
    ["the name of the whole container too", "node", [f("container", "c0c0c0c0")], ["b:1 1/2"]],
    ["what cannot be judged here narrows nothing", "runtime", [f("workload", "[[:alpha:]]", true)], ["gramine 2/2"]],
  ])("%s", (_, kind, filters, want) => {
    expect(left(kind, ...filters)).toEqual(want);
  });
});
