// SPDX-License-Identifier: Apache-2.0

// Writes JSON for Go: the definitions of all panels, the queries of a report, the values of placeholders, and cases of
// filled queries. Usage: node write-dashboards.mjs PANELS-FILE QUESTIONS-FILE PAGEQUERY-FILE CASES-FILE
import { writeFileSync } from "node:fs";
import { createServer } from "vite";

const [panels, asked, shared, cases] = process.argv.slice(2);
if (cases === undefined) throw new Error("usage: node write-dashboards.mjs PANELS-FILE QUESTIONS-FILE PAGEQUERY-FILE CASES-FILE");
const server = await createServer({ server: { middlewareMode: true, ws: false, watch: null }, appType: "custom", logLevel: "error" });
try {
  const { DASHBOARDS } = await server.ssrLoadModule("/src/panels/dashboards/index.ts");
  const { questions } = await server.ssrLoadModule("/src/report/questions.ts");
  const { pageQuery } = await server.ssrLoadModule("/src/report/page-query.ts");
  const { fillCases } = await server.ssrLoadModule("/src/report/fill-cases.ts");
  writeFileSync(panels, `${JSON.stringify(DASHBOARDS, undefined, 1)}\n`);
  writeFileSync(shared, `${JSON.stringify(pageQuery(), undefined, 1)}\n`);
  writeFileSync(asked, `${JSON.stringify(questions(), undefined, 1)}\n`);
  const { fill, steps } = fillCases();
  const lines = (all) => all.map((one) => JSON.stringify(one)).join(",\n");
  writeFileSync(cases, `{"fill": [\n${lines(fill)}\n],\n"steps": [\n${lines(steps)}\n]}\n`);
} finally {
  await server.close();
}
