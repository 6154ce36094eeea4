// SPDX-License-Identifier: Apache-2.0
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";

const dist = fileURLToPath(new URL("../dist", import.meta.url));

/** Bytes, compressed. The first is what the overview needs, others load when they are opened. */
const LIMITS = { first: 70_000, views: 128_000, library: 25_000 };
const LIBRARY = "assets/uPlot.js";

/** The built files that the page loads. The script of reports is in a folder of its own. */
function files(): string[] {
  return readdirSync(dist, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(dist.length + 1))
    .filter((name) => !name.startsWith("report/"));
}

describe("the built page", () => {
  it.each(Object.entries(LIMITS))("has in %s at most %d bytes, compressed", (part, limit) => {
    const html = readFileSync(join(dist, "index.html"), "utf8");
    const first = new Set(["index.html", ...[...html.matchAll(/(?:src|href)="\.\/([^"]+)"/g)].map(([, name]) => name)]);
    const members = files().filter((name) => (part === "first" ? first.has(name) : (name === LIBRARY) === (part === "library")));
    expect(first.size).toBeGreaterThanOrEqual(4); // the page, its icon, the script and the style sheet; the bundler may split these
    expect(first).not.toContain(LIBRARY);
    expect(members.length).toBeGreaterThanOrEqual(part === "library" ? 1 : first.size);
    const sizes = members.map((name): [string, number] => [name, gzipSync(readFileSync(join(dist, name))).length]);
    const sum = sizes.reduce((total, [, size]) => total + size, 0);
    expect(sum, JSON.stringify(sizes)).toBeLessThanOrEqual(limit);
  });

  it("has file names without a hash, so that a change of the page is one diff", () => {
    expect(files().filter((name) => !/^(assets\/)?[A-Za-z]+\.[a-z]+$/.test(name))).toEqual([]);
  });

  it("has a library that a page of another version may load: it imports nothing and has one export", () => {
    const library = readFileSync(join(dist, LIBRARY), "utf8");
    expect(library).toMatch(/export\{\w+ as default\};?\s*$/);
    expect(library.match(/\b(?:import|export)\b\s*[^\s=:,)]/g)).toHaveLength(1);
  });

  it("names no other host to load something from", () => {
    for (const name of files()) {
      const text = readFileSync(join(dist, name), "utf8");
      const hosts = [...text.matchAll(/(?:src|href|url|import)\s*[=(]\s*["'`(]?https?:\/\/[^\s"'`)]+/g)].map(([found]) => found);
      expect(hosts, name).toEqual([]);
    }
  });
});
