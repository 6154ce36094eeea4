// SPDX-License-Identifier: Apache-2.0
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const src = fileURLToPath(new URL(".", import.meta.url));

/** Maps every module of the page to the modules of the page that it imports, type imports included. */
function graph(): Map<string, string[]> {
  const files = readdirSync(src, { recursive: true, encoding: "utf8" }).filter((name) => /\.tsx?$/.test(name) && !name.endsWith(".d.ts"));
  return new Map(files.map((file) => [file, imports(file)]));
}

function imports(file: string): string[] {
  const text = readFileSync(join(src, file), "utf8");
  const named = [...text.matchAll(/\b(?:from|import)\s*\(?\s*"(\.[^"]+)"/g)].map(([, name]) => name ?? "");
  return named.filter((name) => !/\.(css|json)$/.test(name)).map((name) => resolve(join(src, dirname(file), name)));
}

function resolve(path: string): string {
  const found = [`${path}.ts`, `${path}.tsx`, join(path, "index.ts")].find(existsSync);
  if (found === undefined) throw new Error(`there is no module ${path}`);
  return relative(src, found);
}

/** Returns the modules of the first import cycle that a walk finds, in order. */
function circle(modules: ReadonlyMap<string, readonly string[]>): string[] {
  const done = new Set<string>();
  const walk = (module: string, path: readonly string[]): string[] => {
    const at = path.indexOf(module);
    if (at >= 0) return [...path.slice(at), module];
    if (done.has(module)) return [];
    for (const next of modules.get(module) ?? []) {
      const found = walk(next, [...path, module]);
      if (found.length > 0) return found;
    }
    done.add(module);
    return [];
  };
  for (const module of modules.keys()) {
    const found = walk(module, []);
    if (found.length > 0) return found;
  }
  return [];
}

it("finds a circle", () => {
  expect(circle(new Map([["a", ["b"]], ["b", ["c", "d"]], ["c", []], ["d", ["b"]]]))).toEqual(["b", "d", "b"]);
});

it("no module imports itself by way of others", () => {
  const modules = graph();
  expect(modules.size).toBeGreaterThan(100);
  expect(modules.get("main.tsx")).toContain("lib/session.ts");
  expect(circle(modules)).toEqual([]);
});

it("every export has a user in another module", () => {
  const outside = ["../../test/browser", ".."].flatMap((dir) => {
    const at = join(src, dir);
    return readdirSync(at).filter((name) => /\.(ts|mjs)$/.test(name)).map((name) => readFileSync(join(at, name), "utf8"));
  });
  const texts = new Map([...graph().keys()].map((file) => [file, readFileSync(join(src, file), "utf8")]));
  const files = new Map<string, number>(); // by word, the number of files that have it
  for (const text of [...texts.values(), ...outside]) {
    for (const word of new Set(text.match(/\w+/g))) files.set(word, (files.get(word) ?? 0) + 1);
  }
  const unused = [...texts].flatMap(([file, text]) =>
    [...text.matchAll(/^export (?:async )?(?:const|let|function|class|interface|type|enum) (\w+)/gm)]
      .map(([, name]) => name ?? "")
      .filter((name) => files.get(name) === 1)
      .map((name) => `${file}: ${name}`),
  );
  expect(unused).toEqual([]);
});
