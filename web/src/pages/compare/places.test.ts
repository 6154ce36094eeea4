// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { areSeveral, placeId, placeName, placeOf, placesOf, withNode, undecided } from "./places";

const places = placesOf([
  { workload: "redis", instance: "b:1" },
  { workload: "redis", instance: "a:1" },
  { workload: "nginx", instance: "a:1", kind: "unit" },
  { workload: "nginx", instance: "a:1", kind: "container" },
  { instance: "a:1" },
]);

describe("places", () => {
  it("are each once, sorted, and come back from their texts", () => {
    expect(places.map((p) => placeName(p, true))).toEqual(["nginx · a:1", "redis · a:1", "redis · b:1"]);
    for (const place of [...places, { workload: "odd\nname", node: "" }]) expect(placeOf(placeId(place))).toEqual(place);
  });

  it("are of several machines or of one", () => {
    expect(areSeveral(places)).toBe(true);
    expect(areSeveral(places.filter((p) => p.node === "a:1"))).toBe(false);
    expect(placeName({ workload: "redis", node: "a:1" }, false)).toBe("redis");
  });

  it.each([
    ["redis", "", ["a:1", "b:1"]],
    ["redis", "a:1", []],
    ["nginx", "", []],
    ["gone", "", []],
  ])("%s on %j leaves open: %j", (workload, node, want) => {
    expect(undecided(places, { workload, node })).toEqual(want);
  });

  it("add the machine of a workload that has only one", () => {
    expect(withNode(places, { workload: "nginx", node: "" }).node).toBe("a:1");
    expect(withNode(places, { workload: "redis", node: "" }).node).toBe("");
    expect(withNode(places, { workload: "redis", node: "c:1" }).node).toBe("c:1");
  });
});
