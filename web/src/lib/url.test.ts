// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { DEFAULT_VIEW, formatView, parseView, toggleWorkload, type ViewState } from "./url";

describe("the URL", () => {
  it("is bare for the default view", () => {
    expect(formatView(DEFAULT_VIEW)).toBe("/");
    expect(parseView("")).toEqual(DEFAULT_VIEW);
  });

  it.each<ViewState>([
    { page: "system", workloads: ["redis-server"], range: "15m", live: true },
    { page: "status", workloads: [], range: "5m", live: false },
    { page: "containers", workloads: ["e5e5e5e5e5e5"], range: "5m", live: true },
    { page: "infrastructure", workloads: ["kept"], range: "1h", live: true },
    { page: "overview", workloads: ["a,b & c", "nginx.service", "ü"], range: "7d", live: true },
    { page: "system", workloads: [], range: "1h", live: false, fixed: { from: 1_800_000_000, to: 1_800_000_600 } },
  ])("keeps %j", (view) => {
    expect(parseView(formatView(view).slice(1))).toEqual(view);
  });

  it("is readable", () => {
    const view: ViewState = { ...DEFAULT_VIEW, live: false, fixed: { from: 1_800_000_000, to: 1_800_000_600 } };
    expect(formatView(view)).toBe("/?from=2027-01-15T08:00:00Z&to=2027-01-15T08:10:00Z");
  });

  it.each([
    ["?page=nowhere&range=3y&from=x&to=y&w=", DEFAULT_VIEW],
    ["?from=1800000600&to=1800000000", DEFAULT_VIEW], // the wrong way round
    ["?range=15m&live=1", { ...DEFAULT_VIEW, range: "15m" }],
  ])("takes from %s what it understands", (search, want) => {
    expect(parseView(search)).toEqual(want);
  });

  it("stops the live tail for an absolute range", () => {
    expect(parseView("?from=1800000000&to=1800000600&live=1").live).toBe(false);
  });
});

describe("toggleWorkload", () => {
  it("adds sorted and takes away", () => {
    const one = toggleWorkload({ ...DEFAULT_VIEW, workloads: ["b"] }, "a");
    expect(one.workloads).toEqual(["a", "b"]);
    expect(toggleWorkload(one, "b").workloads).toEqual(["a"]);
  });
});
