// SPDX-License-Identifier: Apache-2.0
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { fillTemplate } from "../../lib/promql";
import { families } from "../families";
import metrics from "../metrics.json";
import { expressions, isTabular } from "../panel-queries";
import type { PanelDef } from "../types";
import { DASHBOARDS } from "./index";

const PARSED: Readonly<Record<string, readonly string[] | undefined>> = metrics;

const all: PanelDef[] = [...new Set(DASHBOARDS.flatMap((d) => d.sections).flatMap((s) => s.panels))];

const METRICS = readFileSync(fileURLToPath(new URL("../../../../docs/user/metrics.md", import.meta.url)), "utf8");

describe("the list of panels", () => {
  it("has every file of the folder as a dashboard", () => {
    const files = readdirSync(fileURLToPath(new URL(".", import.meta.url)))
      .map((file) => file.replace(/\.ts$/, ""))
      .filter((name) => name !== "index" && name !== "pick" && name !== "virtual" && !name.endsWith(".test"));
    expect(DASHBOARDS.map((d) => d.id).sort()).toEqual(files.sort());
  });

  it("has each panel once, under an id of its own", () => {
    const ids = all.map((def) => def.id);
    expect(ids.length).toBeGreaterThan(90);
    expect([...new Set(ids)].sort()).toEqual(ids.sort());
  });

  it("is pure data", () => {
    for (const def of all) expect(JSON.parse(JSON.stringify(def))).toEqual(def);
  });
});

/** Returns the selectors of an expression: names that are not function, keyword, label or text. */
function selectors(expr: string): string[] {
  const bare = expr.replace(/\b(?:by|on|ignoring|without|group_left|group_right) \([^)]*\)|\[[^\]]*\]|, "[^"]*"|\$(?:rate|containers|span)/g, " ");
  const found = bare.match(/[a-zA-Z_:][\w:]*(?:\{(?:"[^"]*"|[^}"])*\}|(?!\w|:|\s*\())/g) ?? [];
  return found.filter((name) => !/^(?:and|or|unless|by|on|bool)$/.test(name));
}

describe("what several machines have", () => {
  it.each(all)("has distinct series in $id", (def) => {
    for (const expr of expressions(def)) {
      for (const [grouped, labels] of expr.matchAll(/by \(([^)]*)\)/g)) {
        if (/\b(?:workload|container|id)\b/.test(labels ?? "")) expect(labels?.split(", "), grouped).toContain("instance");
      }
    }
    if (isTabular(def)) {
      const keys = def.keys.map((k) => k.label);
      if (keys.some((label) => label === "workload" || label === "id")) expect(keys, def.id).toContain("instance");
    }
  });
});

describe("the filters", () => {
  it("are found by this test", () => {
    expect(selectors('sum by (a) ($rate(b{c="}d",$nodes}[$window]) $containers) / on (e) f:g and h{$workloads} > 0 * time()')).toEqual([
      'b{c="}d",$nodes}',
      "f:g",
      "h{$workloads}",
    ]);
  });

  it.each(all)("reach every selector of $id", (def) => {
    for (const expr of expressions(def)) {
      expect(selectors(expr).length, expr).toBeGreaterThan(0);
      for (const selector of selectors(expr)) {
        // Families with the label workload are filtered by it, others by their node.
        const labelled = /^(?:teescope:window_|sgx_workload_|sgx_enclave_info|teescope_(?!bpf_|build_|collector_|probe_|sampling_ratio|self_|vm_(?!info)|bounce_|guest_|memory_(?:convert|conversion|accept)|idle_|ipis_|gpu_|vsock_|nitro_))/.test(selector);
        expect(selector, expr).toMatch(labelled ? /[{,]\$(?:workloads|candidates)\}$/ : /[{,]\$nodes\}$/);
      }
      if (expr.includes("container_") && /\bname!=/.test(expr)) expect(expr, def.id).toContain("$containers");
      if (expr.includes("$candidates")) expect(def, def.id).toHaveProperty("filters", true);
    }
  });
});

describe.each(all)("$id", (def) => {
  it("has texts in sentences", () => {
    expect(def.question).toMatch(/\?$/);
    expect(def.help).toMatch(/\.$/);
    expect(def.empty.text).toMatch(/[.?]$/);
  });

  it("leads to what is written of its metrics", () => {
    expect(families(def).length).toBeGreaterThan(0);
    expect([...families(def)].sort(), "the metrics that Prometheus' parser finds").toEqual([...(PARSED[def.id] ?? [])].sort());
    for (const name of families(def)) expect(METRICS, name).toContain(`\n## ${name}\n`);
  });

  it("has complete queries", () => {
    for (const expr of expressions(def)) {
      const filled = fillTemplate(expr, { workloads: ["a", "b.c"], filters: [{ kind: "node", text: "h", regex: false }], step: 15, scrapeInterval: 5, age: 100 });
      expect(filled).not.toContain("$");
      for (const [open, close] of ["()", "{}", "[]"]) {
        expect(filled.split(open ?? "").length).toBe(filled.split(close ?? "").length);
      }
      // rate first, then sum. In the other order a restart looks like a burst.
      expect(filled).not.toMatch(/rate\(\s*sum/);
      // Counters are only read as rates. The sampling ratio is a ratio of two counters.
      if (filled.includes("_total") && !filled.includes("_sampled_run")) expect(filled).toMatch(/i?rate\([a-z_]+_total/);
    }
  });
});
