// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { areSeveral, workloadId, workloadName, workloadOfId, workloadsOf, withNode, undecided } from "./node-workloads";

const candidates = workloadsOf([
  { workload: "redis", instance: "b:1" },
  { workload: "redis", instance: "a:1" },
  { workload: "nginx", instance: "a:1", kind: "unit" },
  { workload: "nginx", instance: "a:1", kind: "container" },
  { instance: "a:1" },
]);

describe("candidates", () => {
  it("are each once, sorted, and come back from their texts", () => {
    expect(candidates.map((p) => workloadName(p, true))).toEqual(["nginx · a:1", "redis · a:1", "redis · b:1"]);
    for (const choice of [...candidates, { workload: "odd\nname", node: "" }]) expect(workloadOfId(workloadId(choice))).toEqual(choice);
  });

  it("are of several machines or of one", () => {
    expect(areSeveral(candidates)).toBe(true);
    expect(areSeveral(candidates.filter((p) => p.node === "a:1"))).toBe(false);
    expect(workloadName({ workload: "redis", node: "a:1" }, false)).toBe("redis");
  });

  it.each([
    ["redis", "", ["a:1", "b:1"]],
    ["redis", "a:1", []],
    ["nginx", "", []],
    ["gone", "", []],
  ])("%s on %j leaves open: %j", (workload, node, want) => {
    expect(undecided(candidates, { workload, node })).toEqual(want);
  });

  it("add the machine of a workload that has only one", () => {
    expect(withNode(candidates, { workload: "nginx", node: "" }).node).toBe("a:1");
    expect(withNode(candidates, { workload: "redis", node: "" }).node).toBe("");
    expect(withNode(candidates, { workload: "redis", node: "c:1" }).node).toBe("c:1");
  });
});
