// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { Client } from "../api/client";
import { panelQueries } from "../panels/panel-queries";
import type { BarsDef } from "../panels/types";
import { fillCases } from "./fill-cases";
import { pageQuery } from "./page-query";
import { CONTENTS, questions } from "./questions";
import { recordedFetch, silence, unpack } from "./recording";

const read = (path: string): unknown => JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8"));

describe("the queries of a report", () => {
  it("is filled by its writer as by the page", () => {
    expect(read("../../../internal/server/pagequery/testdata/fill.json")).toEqual(fillCases());
  });

  it("is filled from what was written down for its writer", () => {
    expect(read("../../../internal/server/pagequery/pagequery.json")).toEqual(pageQuery());
  });

  it("is what was written down for its writer, and has every question of every panel", () => {
    expect(read("../../../internal/server/report/questions.json")).toEqual(questions());
    const asked = new Set(questions().map((q) => q.expr));
    for (const def of CONTENTS.flatMap((d) => d.sections.flatMap((s) => s.panels))) {
      for (const { expr } of panelQueries(def)) expect(asked.has(expr), def.id).toBe(true);
    }
  });
});

const made = {
  server: "host:9750",
  version: "v1",
  made: 1000,
  from: 703,
  to: 1003,
  workloads: ["redis"],
  scrapeInterval: 5,
  findings: { schema: 1 },
  answers: [
    { expr: "$rate(a{$workloads}[$window])", points: 60, from: 700, step: 5, series: [{ m: { x: "y" }, v: [1, null, 2.5], e: [3] }] },
    { expr: "b{$workloads}", points: 0, from: 1003, step: 60, series: [{ m: {}, v: [7] }] },
    { expr: "c", points: 0, from: 1003, step: 60, series: null, error: "it took too long" },
  ],
  leftOut: null,
};
const BARS: BarsDef = { id: "x", kind: "bars", title: "X", question: "?", unit: "count", help: "", empty: { text: "none" }, queries: [] };
const packed = (value: unknown): string => gzipSync(JSON.stringify(value)).toString("base64");

describe("a recording", () => {
  it("answers the queries of the page, and reports those it cannot answer", async () => {
    const client = new Client({ fetch: recordedFetch(await unpack(packed(made))) });
    expect(await client.range('irate(a{workload="redis"}[20s])', 700, 1005, 5)).toEqual([{ metric: { x: "y" }, values: [[700, 1], [710, 2.5]] }]);
    expect(await client.range('irate(a{workload="redis"}[20s])', 1003, 1003, 5)).toEqual([{ metric: { x: "y" }, values: [[1003, 3]] }]);
    expect(await client.instant('b{workload="redis"}', 1003)).toEqual([{ metric: {}, value: [1003, 7] }]);
    await expect(client.instant("c", 1003)).rejects.toThrow(/took too long/);
    await expect(client.instant("d", 1003)).rejects.toThrow(/report does not contain/);
  });

  it("finds panels with empty answers, which are not failures", async () => {
    const panel = (...exprs: string[]): BarsDef => ({ ...BARS, queries: exprs.map((expr) => ({ expr, legend: "" })) });
    const empty = { expr: "e", points: 0, from: 1003, step: 60, series: [] };
    const silent = silence(await unpack(packed({ ...made, answers: [...made.answers, empty] })));
    expect(["e", "c", "b{$workloads}", "d"].map((expr) => silent(panel(expr)))).toEqual([true, false, false, false]);
    expect(silent(panel("e", "c"))).toBe(false);
  });

  it("is refused when it is cut or of another page", async () => {
    await expect(unpack(packed(made).slice(0, 40))).rejects.toThrow();
    await expect(unpack(packed({ ...made, to: "x" }))).rejects.toThrow(/recording.to/);
    const other = await unpack(packed({ ...made, from: 100 }));
    expect(() => recordedFetch(other)).toThrow(/another version/);
  });
});
