// SPDX-License-Identifier: Apache-2.0

// Builds the page into dist/, which is committed and embedded into the binary.
// The output is a pure function of the sources and the lock file: no time
// stamps, no source maps. File names have no content hash, so that a change of
// the page is one diff; the server tells versions apart by ETag
// (internal/server/httpapi/page.go).
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
    rolldownOptions: {
      output: {
        entryFileNames: "assets/[name].js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: "assets/[name][extname]",
        // A chunk of a newer page that does not fit the chunks loaded before fails to link; with one-letter names it could
        // link to something else of the same letter.
        minifyInternalExports: false,
      },
    },
  },
  // `npm run dev` talks to a teescope that runs beside it.
  // The sentences of findings are in internal/analysis/render.
  server: { fs: { allow: [".."] }, proxy: { "/api": process.env["TEESCOPE_URL"] ?? "http://127.0.0.1:9750" } },
});
