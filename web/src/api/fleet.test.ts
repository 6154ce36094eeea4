// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { fleet } from "./fleet";

const answer = (fit: object, placement: object = {}, left: object = {}): unknown => ({
  nodes: [], tees: [], versions: [], hottest: [], evictions: [], causes: [], problems: [],
  placement: { fits: [{ pod: "shop/db", node: "n1", working_set_bytes: { low: 1, high: 2 }, nodes: 3, ...fit }], moves: [], crowded: 2, relieved: 1, ...placement },
  left_out: { nodes: 0, pods: 0, fits: 0, moves: 0, evictions: 0, causes: 0, ...left },
});

describe("the placement", () => {
  it("has a cell for each column, and the nodes that are not judged", () => {
    const cells = [{ fits: "yes", pressure: { low: 0.5, high: 0.75 } }, { fits: "unknown", pressure: { low: 0.5 } }, { fits: "unknown" }];
    const { placement, left_out } = fleet(answer({ unknown: 4, cells }, { columns: ["a", "b", "c"], unjudged: 5 }, { columns: 6 }), "fleet");
    expect(placement.columns).toEqual(["a", "b", "c"]);
    expect(placement.fits[0]?.cells.map((c) => [c.fits, c.pressure?.high])).toEqual([["yes", 0.75], ["unknown", undefined], ["unknown", undefined]]);
    expect([placement.fits[0]?.unknown, placement.unjudged, left_out.columns]).toEqual([4, 5, 6]);
  });

  it("of a server without these is read too", () => {
    const { placement, left_out } = fleet(answer({}), "fleet");
    expect([placement.columns, placement.fits[0]?.cells, placement.unjudged, left_out.columns]).toEqual([[], [], 0, 0]);
  });
});
