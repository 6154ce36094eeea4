// SPDX-License-Identifier: Apache-2.0

// Browser tests in ../test/browser with the real binary, Redis and Chromium. The aliases exist because
// they share this package's lock file.
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** Files that run alone, at the end: their tests measure time, or a program takes a processor. */
const ALONE = ["findings.test.ts", "page.test.ts", "speed.test.ts"];
/** The files whose emulated machines need a processor run after the others. They measure no time. */
const MACHINE = ["cvm.test.ts", "tee.test.ts"];
/** The files that take longest. They begin first, so that no worker waits for them at the end. */
const LONGEST = ["every.test.ts", "looks.test.ts"];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const long = (file: TestSpecification): number => Number(LONGEST.some((name) => file.moduleId.endsWith(`/${name}`)));
    return sorted.sort((a, b) => long(b) - long(a));
  }
}

export default defineConfig({
  root: here("../test/browser"),
  resolve: {
    alias: {
      "playwright-core": here("node_modules/playwright-core/index.mjs"),
      sharp: here("node_modules/sharp/dist/index.mjs"),
      vite: here("node_modules/vite/dist/node/index.js"),
      vitest: here("node_modules/vitest/dist/index.js"),
    },
  },
  server: { fs: { allow: [here("..")] } },
  test: {
    // Limits only end what hangs: a test that takes long on a busy machine is not wrong.
    testTimeout: 3_600_000,
    hookTimeout: 3_600_000,
    sequence: { sequencer: LongestFirst },
    projects: [
      { extends: true, test: { name: "three at a time", include: ["*.test.ts"], exclude: [...ALONE, ...MACHINE], maxWorkers: 3, sequence: { groupOrder: 0 } } },
      { extends: true, test: { name: "machine", include: MACHINE, fileParallelism: false, sequence: { groupOrder: 1 } } },
      // Only `make pictures` runs it.
      ...(process.env["PICTURES"] === undefined ? [] : [{ extends: true as const, test: { name: "pictures", include: ["pictures.ts"] } }]),
      { extends: true, test: { name: "alone", include: ALONE, fileParallelism: false, sequence: { groupOrder: 2 } } },
    ],
  },
});
