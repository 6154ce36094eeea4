// SPDX-License-Identifier: Apache-2.0

// Writes the definitions of all panels as JSON, for renderers that do not speak TypeScript, and all that a report asks.
// Usage: node write-dashboards.mjs PANELS-FILE QUESTIONS-FILE
import { writeFileSync } from "node:fs";
import { createServer } from "vite";

const [panels, asked] = process.argv.slice(2);
if (asked === undefined) throw new Error("usage: node write-dashboards.mjs PANELS-FILE QUESTIONS-FILE");
const server = await createServer({ server: { middlewareMode: true, ws: false, watch: null }, appType: "custom", logLevel: "error" });
try {
  const { DASHBOARDS } = await server.ssrLoadModule("/src/panels/dashboards/index.ts");
  const { questions } = await server.ssrLoadModule("/src/report/questions.ts");
  const { families } = await server.ssrLoadModule("/src/panels/asks.ts");
  const described = DASHBOARDS.map((d) => ({
    ...d,
    sections: d.sections.map((s) => ({ ...s, panels: s.panels.map((p) => ({ ...p, metrics: families(p) })) })),
  }));
  writeFileSync(panels, `${JSON.stringify(described, undefined, 1)}\n`);
  writeFileSync(asked, `${JSON.stringify(questions(), undefined, 1)}\n`);
} finally {
  await server.close();
}
