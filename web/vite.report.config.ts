// SPDX-License-Identifier: Apache-2.0

// Builds the script and style sheet of reports into dist/report. internal/server/report puts them into a file.
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
