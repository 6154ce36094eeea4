// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { assignSlots, GREY, HUES } from "./colour";

describe("assignSlots", () => {
  it("gives the first of a list the same slot on every chart", () => {
    const alone = assignSlots(["redis-server"]).get("redis-server");
    for (const other of ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"]) {
      expect(assignSlots(["redis-server", other]).get("redis-server")).toBe(alone);
    }
  });

  it("keeps what a chart showed when the order turns", () => {
    const names = Array.from({ length: HUES }, (_, i) => `svc-${i}.service`);
    const before = assignSlots(names);
    const after = assignSlots([...names].reverse(), before);
    expect([...after].sort()).toEqual([...before].sort());
  });

  it("gives a newcomer a hue that is free", () => {
    const names = Array.from({ length: HUES - 1 }, (_, i) => `svc-${i}.service`);
    const after = assignSlots(["newcomer", ...names], assignSlots(names));
    expect(new Set(after.values()).size).toBe(HUES);
  });

  it("gives different hues while there are enough", () => {
    const names = Array.from({ length: HUES }, (_, i) => `svc-${i}.service`);
    expect(new Set(assignSlots(names).values()).size).toBe(HUES);
  });

  it("still gives everyone a colour when there are not", () => {
    const names = Array.from({ length: 50 }, (_, i) => `svc-${i}`);
    expect(assignSlots(names).size).toBe(50);
  });

  it("keeps grey for what is not one thing", () => {
    const slots = assignSlots(["kernel", "other", "the rest (12)", "idle"]);
    expect([slots.get("the rest (12)"), slots.get("idle")]).toEqual([GREY, GREY]);
    expect(slots.get("other")).not.toBe(slots.get("kernel"));
  });
});
