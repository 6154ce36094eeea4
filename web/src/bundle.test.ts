// SPDX-License-Identifier: Apache-2.0
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";

const dist = fileURLToPath(new URL("../dist", import.meta.url));
const LIMIT = 120_000;

/** The built files that the page loads. The script of reports is in a folder of its own. */
function files(): string[] {
  return readdirSync(dist, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(dist.length + 1))
    .filter((name) => !name.startsWith("report/"));
}

describe("the built page", () => {
  it(`has at most ${LIMIT / 1000} kB, compressed, the chart library included`, () => {
    const sizes = files().map((name): [string, number] => [name, gzipSync(readFileSync(join(dist, name))).length]);
    expect(sizes.filter(([name]) => /\.(js|css|html)$/.test(name)).length).toBeGreaterThanOrEqual(3);
    const sum = sizes.reduce((total, [, size]) => total + size, 0);
    expect(sum, JSON.stringify(sizes)).toBeLessThanOrEqual(LIMIT);
  });

  it("has file names without a hash, so that a change of the page is one diff", () => {
    expect(files().filter((name) => !/^(assets\/)?[A-Za-z]+\.[a-z]+$/.test(name))).toEqual([]);
  });

  it("names no other host to load something from", () => {
    for (const name of files()) {
      const text = readFileSync(join(dist, name), "utf8");
      const hosts = [...text.matchAll(/(?:src|href|url|import)\s*[=(]\s*["'`(]?https?:\/\/[^\s"'`)]+/g)].map(([found]) => found);
      expect(hosts, name).toEqual([]);
    }
  });
});
