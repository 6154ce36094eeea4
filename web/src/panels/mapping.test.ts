// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { mappingKey } from "../lib/view-keys";
import { inAll } from "./mapping";

describe("the mapping of filters to workloads", () => {
  const filters = [{ kind: "pod", text: "shop", regex: false }] as const;

  it("is asked for again where the filters or the time are others", () => {
    expect(mappingKey({ filters: [{ kind: "node", text: "h:1", regex: false }], range: "5m" })).toBe("");
    const keys = [
      mappingKey({ filters, range: "5m" }),
      mappingKey({ filters, range: "1h" }),
      mappingKey({ filters, range: "5m", fixed: { from: 1, to: 2 } }),
      mappingKey({ filters: [...filters, { kind: "node", text: "h:1", regex: false }], range: "5m" }),
    ];
    expect(new Set(keys).size).toBe(4);
  });

  it("is what every kind leaves", () => {
    expect(inAll([["a", "b", "c"], ["c", "a"]])).toEqual(["a", "c"]);
    expect(inAll([["a"], []])).toEqual([]);
    expect(inAll([["a"]])).toEqual(["a"]);
  });
});
