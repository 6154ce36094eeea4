// SPDX-License-Identifier: Apache-2.0

// Builds the page into dist/, which is committed and embedded into the binary. The output depends on the sources and
// the lock file only: no time stamps, no source maps. File names have no content hash, so that a change of the page is
// one diff. The server distinguishes versions by ETag (internal/server/httpapi/page.go).
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
        chunkFileNames: ({ name }) => `assets/${name.replace(/\..*/, "")}.js`,
        assetFileNames: "assets/[name][extname]",
        // A newer chunk that does not match the loaded ones fails to link. With one-letter names it could link to a
        // different export.
        minifyInternalExports: false,
      },
    },
  },
  // The phrases of findings are in internal/analysis/render. `npm run dev` uses a teescope on the same machine.
  server: { fs: { allow: [".."] }, proxy: { "/api": process.env["TEESCOPE_URL"] ?? "http://127.0.0.1:9750" } },
});
