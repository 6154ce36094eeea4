// SPDX-License-Identifier: Apache-2.0

// Builds what draws a report into dist/report: one script and one style sheet, which internal/server/report puts into a file.
import { defineConfig } from "vite";

export default defineConfig({
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  publicDir: false,
  build: {
    target: "es2022",
    outDir: "dist/report",
    sourcemap: false,
    modulePreload: false,
    cssCodeSplit: false,
    rolldownOptions: {
      input: "src/report/main.tsx",
      output: { entryFileNames: "report.js", assetFileNames: "report[extname]", codeSplitting: false },
    },
  },
});
