// SPDX-License-Identifier: Apache-2.0

// Builds the page into dist/, which is committed and embedded into the binary.
// The output is a pure function of the sources and the lock file: content
// hashes, no time stamps, no source maps.
import { defineConfig } from "vite";

export default defineConfig({
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2022",
    sourcemap: false,
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: true,
  },
  // `npm run dev` talks to a teescope that runs beside it.
  server: { proxy: { "/api": process.env["TEESCOPE_URL"] ?? "http://127.0.0.1:9750" } },
});
