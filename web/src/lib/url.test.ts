// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { LONGEST_PATTERN, MOST_FILTERS } from "./filters";
import { allFilters, applyChecks, clearFilters, DEFAULT_VIEW, dropPattern, formatView, parseView, toggleFilter, toggleWorkload, type ViewState } from "./url";

/** The answers of a server that accepts all patterns of a view. */
const valid = (view: ViewState): Map<string, string> => new Map(view.filters.map((f) => [f.text, ""]));

describe("the URL", () => {
  it("is bare for the default view", () => {
    expect(formatView(DEFAULT_VIEW)).toBe("/");
    expect(parseView("")).toEqual(DEFAULT_VIEW);
  });

  const part = (text: string): ViewState["filters"] => [
    { kind: "workload", text: `${text}-(a|b)+.*`, regex: true },
    { kind: "container", text: "web & co=1", regex: false },
    { kind: "container", text: "e5.*", regex: true },
    { kind: "pod", text: "shop-7d9f/ü", regex: false },
    { kind: "runtime", text: "gramine", regex: false },
    { kind: "node", text: "[::1]:9750", regex: false },
    { kind: "node", text: "host-\\d+:9750", regex: true },
  ];

  it.each<Partial<ViewState>>([
    { page: "system", workloads: ["redis-server"], range: "15m" },
    { page: "status", live: false },
    { page: "dashboards", board: "redis-p99-2" },
    { page: "profile", workloads: ["ü & 1"], profile: { of: "ü & 1", base: "before" } },
    { page: "profile", profile: { of: "", part: { from: 1_800_000_000.5, to: 1_800_000_001, pid: "7", tid: "8" }, base: { from: 1, to: 2 } } },
    { page: "profile", workloads: ["web"], profile: { of: "web", event: "syscalls", value: "wall", base: "before" } },
    { page: "containers", workloads: ["e5e5e5e5e5e5"] },
    { page: "infrastructure", workloads: ["kept"], range: "1h" },
    { workloads: ["a,b & c", "nginx.service", "ü"], range: "7d" },
    { page: "system", range: "1h", live: false, fixed: { from: 1_800_000_000, to: 1_800_000_600 } },
    { range: "90m", zone: "utc" },
    { range: "1h30m", filters: part("redis") },
    { workloads: ["w.re=x", "~"], filters: part("%&#+ "), zone: "utc" },
  ])("keeps %j", (given) => {
    const view = { ...DEFAULT_VIEW, ...given };
    expect(applyChecks(parseView(formatView(view).slice(1)), valid(view))).toEqual(view);
  });

  it("is readable", () => {
    const view: ViewState = { ...DEFAULT_VIEW, live: false, fixed: { from: 1_800_000_000, to: 1_800_000_600 } };
    expect(formatView(view)).toBe("/?from=2027-01-15T08:00:00Z&to=2027-01-15T08:10:00Z");
  });

  it.each([
    ["?page=nowhere&range=3y&from=x&to=y&w=", DEFAULT_VIEW],
    ["?from=1800000600&to=1800000000", DEFAULT_VIEW], // from after to
    ["?range=0s&tz=mars&pod=", DEFAULT_VIEW],
    ["?range=2y", DEFAULT_VIEW],
    ["?range=15m&live=1", { ...DEFAULT_VIEW, range: "15m" }],
  ])("takes from %s what it understands", (search, want) => {
    expect(parseView(search)).toEqual(want);
  });

  it("keeps patterns apart from the filters until they are checked", () => {
    const view = parseView("?w.re=(&node.re=h.*&pod=p");
    expect(view.filters).toEqual([{ kind: "pod", text: "p", regex: false }]);
    expect(view.unchecked?.map((f) => f.text)).toEqual(["(", "h.*"]);
    const half = applyChecks(view, new Map([["h.*", ""]]));
    expect(half.filters.map((f) => f.text)).toEqual(["p", "h.*"]);
    expect(half.unchecked?.map((f) => f.text)).toEqual(["("]);
    expect([formatView(half), formatView(view)]).toEqual(["/?w.re=%28&pod=p&node.re=h.*", "/?w.re=%28&pod=p&node.re=h.*"]);
    const [first] = half.unchecked ?? [];
    if (!first) throw new Error("one is left");
    expect(dropPattern(half, first).unchecked).toBeUndefined();
  });

  it("refuses a pattern that no person typed without asking", () => {
    const view = applyChecks(parseView(`?w.re=${"a".repeat(LONGEST_PATTERN + 1)}`), new Map());
    expect(view.unchecked).toBeUndefined();
    expect(view.refused?.[0]?.problem).toContain("longer than");
  });

  it("keeps refused patterns, apart from the filters, until they are taken away", () => {
    const checked = new Map([["(", "missing closing )"], ["a(?=b", "invalid or unsupported Perl syntax"], ["h.*", ""]]);
    const view = applyChecks(parseView("?w.re=(&node.re=h.*&container.re=a(?=b"), checked);
    expect(view.filters).toEqual([{ kind: "node", text: "h.*", regex: true }]);
    const [first, second] = view.refused ?? [];
    expect([first?.text, second?.text]).toEqual(["(", "a(?=b"]);
    expect(applyChecks(parseView(formatView(view).slice(1)), checked)).toEqual(view);
    if (!first || !second) throw new Error("both are refused");
    expect(dropPattern(view, first).refused).toEqual([second]);
    expect(formatView(dropPattern(dropPattern(view, first), second))).toBe("/?node.re=h.*");
    expect(formatView(clearFilters(view))).toBe("/");
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

describe("toggleFilter", () => {
  it("adds in order, takes away, and clears", () => {
    const node = { kind: "node", text: "h:1", regex: false } as const;
    const pattern = { kind: "workload", text: "a.*", regex: true } as const;
    const one = toggleFilter(toggleFilter(toggleWorkload(DEFAULT_VIEW, "b"), node), pattern);
    expect(allFilters(one)).toEqual([{ kind: "workload", text: "b", regex: false }, pattern, node]);
    expect(toggleFilter(one, node).filters).toEqual([pattern]);
    expect(toggleFilter(one, { kind: "workload", text: "b", regex: false }).workloads).toEqual([]);
    expect(clearFilters(one)).toEqual(DEFAULT_VIEW);
  });

  it("has an end, by hand and in a link", () => {
    const many = Array.from({ length: MOST_FILTERS + 5 }, (_, i) => ({ kind: "pod", text: `p${i}`, regex: false }) as const);
    expect(many.reduce(toggleFilter, DEFAULT_VIEW).filters).toHaveLength(MOST_FILTERS);
    expect(parseView(many.map((f) => `pod=${f.text}`).join("&")).filters).toHaveLength(MOST_FILTERS);
  });
});
