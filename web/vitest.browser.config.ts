// SPDX-License-Identifier: Apache-2.0

// Browser tests in ../test/browser with the real binary, Redis and Chromium. The aliases exist because
// they share this package's lock file.
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  root: here("../test/browser"),
  resolve: {
    alias: {
      "playwright-core": here("node_modules/playwright-core/index.mjs"),
      vite: here("node_modules/vite/dist/node/index.js"),
      vitest: here("node_modules/vitest/dist/index.js"),
    },
  },
  server: { fs: { allow: [here("..")] } },
  test: {
    include: ["**/*.test.ts"],
    fileParallelism: false,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
