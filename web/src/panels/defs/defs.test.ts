// SPDX-License-Identifier: Apache-2.0
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { fillTemplate } from "../../lib/promql";
import type { PanelDef } from "../types";
import { CONTAINER_TABLE, CONTAINERS, COST, INFRASTRUCTURE, OVERVIEW, STATUS, SYSTEM, TEE, TEE_TABLES, WINDOWS, WORKLOADS } from "./index";

const sections = [...SYSTEM, ...TEE, ...CONTAINERS, ...INFRASTRUCTURE].flatMap((s) => s.panels);
const all: PanelDef[] = [...new Set([...sections, ...OVERVIEW, ...COST, WINDOWS, WORKLOADS, CONTAINER_TABLE, ...STATUS, ...TEE_TABLES])];

function expressions(def: PanelDef): string[] {
  switch (def.kind) {
    case "figure":
      return [def.query.expr];
    case "table":
      return [...def.columns.map((c) => c.expr), ...(def.info ? [def.info.expr] : [])];
    default:
      return def.queries.map((q) => q.expr);
  }
}

describe("the list of panels", () => {
  it("has every file of the folder, each once", () => {
    const files = readdirSync(fileURLToPath(new URL(".", import.meta.url)))
      .map((file) => file.replace(/\.ts$/, ""))
      .filter((name) => name !== "index" && !name.endsWith(".test"));
    expect(all.map((def) => def.id).sort()).toEqual(files.sort());
  });

  it("is pure data", () => {
    for (const def of all) expect(JSON.parse(JSON.stringify(def))).toEqual(def);
  });
});

describe("the filter", () => {
  const filtered = (def: PanelDef): boolean => expressions(def).every((expr) => /\$(workloads|containers)/.test(expr));

  it("reaches every panel of containers, and none of the machine", () => {
    for (const def of [...CONTAINERS.flatMap((s) => s.panels), CONTAINER_TABLE]) expect(filtered(def), def.id).toBe(true);
    for (const def of INFRASTRUCTURE.flatMap((s) => s.panels)) {
      for (const expr of expressions(def)) expect(expr, def.id).not.toMatch(/\$(workloads|containers)/);
    }
  });
});

describe.each(all)("$id", (def) => {
  it("speaks in sentences", () => {
    expect(def.question).toMatch(/\?$/);
    expect(def.help).toMatch(/\.$/);
    expect(def.empty.text).toMatch(/[.?]$/);
  });

  it("asks complete questions", () => {
    for (const expr of expressions(def)) {
      const filled = fillTemplate(expr, { workloads: ["a", "b.c"], step: 15, scrapeInterval: 5, age: 100 });
      expect(filled).not.toContain("$");
      for (const [open, close] of ["()", "{}", "[]"]) {
        expect(filled.split(open ?? "").length).toBe(filled.split(close ?? "").length);
      }
      // rate first, then sum: the other way round a restart looks like a burst.
      expect(filled).not.toMatch(/rate\(\s*sum/);
      // Counters are only ever read as rates; samples are a ratio of two counters.
      if (filled.includes("_total") && !filled.includes("_sampled_run")) expect(filled).toMatch(/i?rate\([a-z_]+_total/);
    }
  });
});
