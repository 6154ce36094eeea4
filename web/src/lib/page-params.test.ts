// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { formatDuration, LONGEST_QUERY, MOST_QUERIES, NO_COMPARE } from "./page-params";
import { DEFAULT_VIEW, formatView, parseView, type ViewState } from "./url";

const view = (more: Partial<ViewState>): ViewState => ({ ...DEFAULT_VIEW, ...more });

describe("the parameters of single pages", () => {
  it.each<ViewState>([
    view({ page: "compare", compare: { ...NO_COMPARE, a: "redis", b: "redis", nodeB: "[::1]:9750", offset: 3600, per: "", perB: "" } }),
    view({ page: "compare", compare: { ...NO_COMPARE, a: "a b", b: "ü&=", offset: 0, per: 'x_total{server="a"}', perB: 'x_total{server="b"}' } }),
    view({ page: "explore", explore: { exprs: ['rate(x{a=~"b+c|d%"}[5m])', "up"], show: "table" } }),
    view({ page: "explore", explore: { exprs: ["a", "b", "c"], show: "chart", units: ["", "bytes"] } }),
    view({ page: "workload", workloads: ["redis"] }),
  ])("come back from the address of %j", (given) => {
    expect(parseView(formatView(given).slice(1))).toEqual(given);
  });

  it("are readable", () => {
    expect(formatView(view({ page: "compare", compare: { ...NO_COMPARE, a: "a", nodeA: "h:1", b: "b", offset: 5400, per: "call:read", perB: "" } }))).toBe(
      "/?page=compare&a=a&anode=h:1&b=b&offset=90m&per=call:read",
    );
  });

  it("belong to one page only", () => {
    expect(formatView(view({ page: "system", explore: { exprs: ["up"], show: "chart" } }))).toBe("/?page=system");
    expect(parseView("?page=system&expr=up&a=x")).toEqual(view({ page: "system" }));
  });

  it("are bounded", () => {
    const many = Array.from({ length: 9 }, (_, i) => `expr=${i}`).join("&");
    expect(parseView(`?page=explore&${many}`).explore?.exprs).toHaveLength(MOST_QUERIES);
    expect(parseView(`?page=explore&expr=${"x".repeat(9999)}`).explore?.exprs[0]).toHaveLength(LONGEST_QUERY);
    expect(parseView("?page=compare&a=x&offset=soon").compare?.offset).toBe(0);
    expect(parseView("?page=explore&expr=a&unit=furlong&unit=bytes").explore?.units).toBeUndefined();
    expect(parseView("?page=explore&expr=&show=dance")).toEqual(view({ page: "explore" }));
  });
});

describe("formatDuration", () => {
  it.each([[30, "30s"], [90, "90s"], [600, "10m"], [5400, "90m"], [7200, "2h"], [604_800, "7d"]])("writes %d as %s", (seconds, want) => {
    expect(formatDuration(seconds)).toBe(want);
  });
});
