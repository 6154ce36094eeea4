// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { fillLegend, fillTemplate, metricsIn, rateFunction, rateWindow, seriesName, workloadMatcher } from "./promql";

const filling = { workloads: [], step: 5, scrapeInterval: 5, age: 1000 };

describe("workloadMatcher", () => {
  it.each([
    [[], `workload!="idle"`],
    [["redis-server"], `workload="redis-server"`],
    [["a.service", "b"], `workload=~"a\\\\.service|b"`],
    [[`we"ird\\`], `workload="we\\"ird\\\\"`],
  ])("%j is %s", (workloads, want) => {
    expect(workloadMatcher({ workloads })).toBe(want);
  });
});

describe("rateFunction", () => {
  it("is exact where points are as dense as scrapes", () => {
    expect(rateFunction(filling)).toBe("irate");
  });

  it("is a mean where points are further apart", () => {
    expect(rateFunction({ ...filling, step: 60 })).toBe("rate");
  });

  it("leaves out no scrape where every second one lies between points", () => {
    expect(rateFunction({ ...filling, step: 10 })).toBe("rate");
  });

  it("does not divide by time before the agent began", () => {
    expect(rateFunction({ ...filling, step: 60, age: 12 })).toBe("irate");
    expect(rateFunction({ ...filling, step: 3600, age: 700 })).toBe("rate");
  });

  it("does not mind an unknown age", () => {
    expect(rateFunction({ ...filling, step: 60, age: undefined })).toBe("rate");
  });
});

describe("rateWindow", () => {
  it.each([
    [5, 1000, 20],
    [60, undefined, 60],
    [60, 59, 40],
    [60, 60, 60],
    [3600, 3, 20],
    [3600, 39, 20],
    [3600, 700, 640],
    [14_400, 3600, 2560],
  ])("of a step of %d s and an agent %d s old is %d s", (step, age, want) => {
    expect(rateWindow(step, 5, age)).toBe(want);
  });
});

describe("fillTemplate", () => {
  const template = "sum by (mode) ($rate(x_total{$workloads}[$window])) # $interval";

  it("fills all placeholders", () => {
    expect(fillTemplate(template, { ...filling, step: 60 })).toBe(
      `sum by (mode) (rate(x_total{workload!="idle"}[60s])) # 60s`,
    );
  });

  it("spans at least four scrapes", () => {
    expect(fillTemplate("[$window]", { ...filling, step: 15 })).toBe("[20s]");
  });

  it("joins the workload of a container only when one is chosen", () => {
    expect(fillTemplate("x $containers", filling)).toBe("x ");
    expect(fillTemplate("x $containers", { ...filling, workloads: ["a"] })).toBe(
      `x and on (instance, id) teescope_container_info{workload="a"}`,
    );
  });

  it("puts the filter of nodes between braces, or nothing without a filter", () => {
    const all = "a{$nodes} + b{mode=\"idle\",$nodes} + c{$workloads}";
    expect(fillTemplate(all, filling)).toBe(`a + b{mode="idle"} + c{workload!="idle"}`);
    expect(fillTemplate(all, { ...filling, filters: [{ kind: "node", text: "h$&:1", regex: false }] })).toBe(
      `a{instance="h$&:1"} + b{mode="idle",instance="h$&:1"} + c{workload!="idle",instance="h$&:1"}`,
    );
  });

  it("restricts workloads to those of other filters, which may be none", () => {
    const chosen = { ...filling, workloads: ["a"], filters: [{ kind: "workload", text: "b.*", regex: true }] as const };
    expect(fillTemplate("{$workloads}", { ...chosen, mapped: ["c", "d.e"] })).toBe(
      `{workload=~"a|(?:b.*)",workload=~"c|d\\\\.e"}`,
    );
    expect(fillTemplate("{$candidates}", { ...chosen, mapped: ["c"] })).toBe(`{workload!="idle",workload="c"}`);
    expect(fillTemplate("{$candidates}", { ...chosen, mapped: [] })).toBe(`{workload!="idle",workload="",workload!=""}`);
    expect(fillTemplate("x $containers", { ...filling, mapped: ["c"] })).toBe(
      `x and on (instance, id) teescope_container_info{workload!="idle",workload="c"}`,
    );
  });

  it("takes a name with $ literally", () => {
    expect(fillTemplate("{$workloads}", { ...filling, workloads: ["a$rate$&"] })).toBe(`{workload="a$rate$&"}`);
  });
});

describe("fillLegend", () => {
  it.each([
    ["{{workload}} {{mode}}", { workload: "redis", mode: "user" }, "redis user"],
    ["{{mode}}", {}, "(no name)"],
    ["processes", {}, "processes"],
    ["{{pod}}/{{container}}|{{pod}}|{{name}}", { pod: "web-0", container: "app", name: "b2b2" }, "web-0/app"],
    ["{{pod}}/{{container}}|{{pod}}|{{name}}", { pod: "web-0", container: "", name: "b2b2" }, "web-0"],
    ["{{pod}}/{{container}}|{{pod}}|{{name}}", { pod: "", container: "e5e5", name: "redis" }, "redis"],
  ])("%s", (template, labels, want) => {
    expect(fillLegend(template, labels)).toBe(want);
  });
});

describe("seriesName", () => {
  const labels = { workload: "redis", instance: "a:1" };
  it.each([
    ["{{workload}}", labels, false, "redis"],
    ["{{workload}}: resident", labels, true, "redis: resident · a:1"],
    ["{{instance}}", labels, true, "a:1"],
    ["free", {}, true, "free"],
  ])("%s of %j with several machines %s", (template, of, several, want) => {
    expect(seriesName(template, of, several)).toBe(want);
  });
});

it("finds the metrics that a query names", () => {
  expect(metricsIn("sum by (up_label) (rate(up[5m])) / up", new Set(["up", "other"]))).toEqual(["up"]);
});
