// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { choicesOf, matching } from "./facets";

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
      { name: "b2b2", count: 1 },
      { name: "e5e5", count: 1 },
      { name: "redis", count: 2 },
      { name: "unnamed", count: 1 },
    ]);
    expect(choices.container).toEqual([
      { name: "app", count: 2 },
      { name: "cache", count: 1 },
      { name: "d4d4", count: 1 },
    ]);
    expect(choices.pod.map((c) => c.name)).toEqual(["shop-1", "shop-2", "uid-2"]);
    expect(choices.runtime).toEqual([{ name: "gramine", count: 1 }]);
    expect(choices.node).toEqual([
      { name: "a:1", count: 7 },
      { name: "b:1", count: 1 },
    ]);
  });

  it("finds words in any order, with what was chosen first", () => {
    const names = (search: string): string[] => matching(choices.pod, ["gone", "uid-2"], search).map((c) => c.name);
    expect(names("")).toEqual(["gone", "uid-2", "shop-1", "shop-2"]);
    expect(names("2 SHOP")).toEqual(["shop-2"]);
  });
});
