// SPDX-License-Identifier: Apache-2.0

// Writes the definitions of all panels as JSON, for renderers that do not speak TypeScript.
// Usage: node write-dashboards.mjs FILE
import { writeFileSync } from "node:fs";
import { createServer } from "vite";

const [file] = process.argv.slice(2);
if (file === undefined) throw new Error("usage: node write-dashboards.mjs FILE");
const server = await createServer({ server: { middlewareMode: true, ws: false, watch: null }, appType: "custom", logLevel: "error" });
try {
  const { DASHBOARDS } = await server.ssrLoadModule("/src/panels/dashboards.ts");
  writeFileSync(file, `${JSON.stringify(DASHBOARDS, undefined, 1)}\n`);
} finally {
  await server.close();
}
