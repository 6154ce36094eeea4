// SPDX-License-Identifier: Apache-2.0

import { describe, expect, it } from "vitest";
import { splitErrors } from "../lib/series";
import { DASHBOARDS } from "./dashboards";
import { chartQueries, ERROR_PREFIX, estimateNote } from "./panel-queries";
import type { ChartDef } from "./types";

const charts = DASHBOARDS.flatMap((d) => d.sections.flatMap((s) => s.panels)).filter((p): p is ChartDef => p.kind === "lines" || p.kind === "stacked");

describe("the error of the sum of all series", () => {
  const [first] = charts.filter((p) => p.errorOfSum !== undefined);
  const named = (values: (number | null)[]) => {
    if (first === undefined) throw new Error("no chart has one");
    const [, second] = chartQueries(first);
    return splitErrors({ times: [1, 2], series: [{ name: "read", values: [5, 6] }, { name: second?.legend ?? "", values }] }, ERROR_PREFIX);
  };

  it("is said with its newest value, and not drawn", () => {
    const { frame, errors } = named([10, 12]);
    expect(frame.series.map((s) => s.name)).toEqual(["read"]);
    expect(estimateNote(errors, "per_second")).toMatch(/sum is at most ± 12.* that of each is not known/);
  });

  it("is not said where all was counted", () => {
    expect(estimateNote(named([null, null]).errors, "per_second")).toBeUndefined();
    expect(estimateNote(undefined, "per_second")).toBeUndefined();
    expect(estimateNote(new Map([["read", [1, 2]]]), "per_second")).toBeUndefined();
  });

  it("is there in every chart of sampled counts without a band", () => {
    const sampled = charts.filter((p) => p.queries.some(({ expr }) => /teescope_(syscalls|page_faults|page_cache_ops)_total/.test(expr)));
    expect(sampled.length).toBeGreaterThanOrEqual(6);
    for (const p of sampled) expect(p.error ?? p.errorOfSum, p.id).toBeDefined();
  });
});
