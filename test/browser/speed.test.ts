// SPDX-License-Identifier: Apache-2.0

// Speed of the page: first paint, many series, many workloads. Each figure is printed. It is the best of several
// attempts, because other programs may use the processors, and an attempt that meets the goal ends them. A test fails
// at a multiple of the goal, which a busy machine does not explain.
import { execFile } from "node:child_process";
import { statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import type { Page } from "playwright-core";
import { build } from "vite";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { chart, holds, shown, Tabs } from "./browser";
import { type Fleet, FLEET_CONTAINERS, FLEET_WORKLOADS, startFleet } from "./fleet";
import { freePort, PATIENCE_SECONDS, Processes, queryValue, startServer, startTeescope, teescopeBinary, until } from "./processes";

const processes = new Processes();
const web = fileURLToPath(new URL("../../web/", import.meta.url));
const servers: Server[] = [];
const tabs = new Tabs();

/**
 * Goals in milliseconds. A figure fails at four times its goal. False alarms: below 4e-8. An attempt exceeds four
 * times its goal in fewer than 1 of 50 while a compiler uses both processors. The best of at least five is judged, in
 * ten tests: 10 * 0.02^5 = 3e-8. A page that is itself four times slower than its goal fails in all attempts. Smaller
 * factors may come from the machine, so the figures are only printed.
 */
const GOALS = { paint: 300, draw: 200, task: 500, frames: 55 };
const MARGIN = 4;

beforeAll(async () => {
  await tabs.launch();
});

afterAll(async () => {
  await tabs.quit();
  await processes.stopAll();
  for (const server of servers) server.close();
});

type Answer = [type: string, body: string | Buffer];

async function serve(answer: (path: string) => Promise<Answer> | Answer): Promise<string> {
  const server = createServer((request, response) => {
    void Promise.resolve(answer((request.url ?? "/").split("?")[0] ?? "/")).then(
      ([type, body]) => response.writeHead(200, { "Content-Type": type }).end(body),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  servers.push(server);
  const port = await freePort();
  await new Promise<void>((done) => server.listen(port, "127.0.0.1", done));
  return `127.0.0.1:${port}`;
}

afterEach(() => tabs.close());

const rounded = (all: readonly number[]): string => all.map((ms) => ms.toFixed(0)).join(", ");

describe("the first paint", () => {
  it("comes at once, under a strict policy", async () => {
    const { url } = await startTeescope(processes, await freePort(), processes.folder());
    const policy = (await fetch(url)).headers.get("Content-Security-Policy") ?? "";
    expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self';/);
    expect(policy).not.toContain("unsafe");
    const paints: number[] = [];
    for (let i = 0; i < 5 && (i < 1 || Math.min(...paints) >= GOALS.paint); i++) {
      const page = await tabs.visit(url);
      paints.push(
        await page.evaluate<number>(`new Promise((done) => new PerformanceObserver((list) => {
          const first = list.getEntriesByName("first-contentful-paint")[0];
          if (first) done(first.startTime);
        }).observe({ type: "paint", buffered: true }))`),
      );
      await tabs.close();
    }
    process.stdout.write(`first contentful paint after ${rounded(paints)} ms (goal ${GOALS.paint})\n`);
    expect(Math.min(...paints)).toBeLessThan(MARGIN * GOALS.paint);
  });
});

describe("500 series of 2,000 points", () => {
  it("are drawn and scroll", async () => {
    const folder = processes.folder();
    await build({
      root: web,
      configFile: join(web, "vite.report.config.ts"),
      logLevel: "error",
      build: { outDir: folder, emptyOutDir: true, rolldownOptions: { input: join(web, "src/panels/charts/drawing.bench.tsx") } },
    });
    const made = Array.from({ length: 500 }, (_, s) => ({
      metric: { name: `series ${s}` },
      values: Array.from({ length: 2000 }, (_, i) => [i, String(Math.round(1000 + 900 * Math.sin(i / (20 + s)) + 7 * s + ((i * 7919 * s) % 97)))]),
    }));
    const data = JSON.stringify({ status: "success", data: { resultType: "matrix", result: made } });
    const address = await serve(async (path): Promise<Answer> => {
      if (path === "/report.js") return ["text/javascript", await readFile(join(folder, "report.js"))];
      if (path === "/report.css") return ["text/css", await readFile(join(folder, "report.css"))];
      if (path.startsWith("/api/")) return ["application/json", data];
      return ["text/html", '<!doctype html><link rel="stylesheet" href="/report.css"><body><script type="module" src="/report.js"></script>'];
    });
    const page = await tabs.visit(`http://${address}/`);
    await holds(page, "window.measure !== undefined");
    const loaded = await page.evaluate<number>("load()");
    const took: number[] = [];
    for (let i = 0; i < 8 && (i < 3 || Math.min(...took) >= GOALS.draw); i++) took.push(await page.evaluate("measure()"));
    process.stdout.write(
      `500 series x 2,000 points: folded and drawn in ${rounded(took)} ms (goal ${GOALS.draw}); asked, checked and put on a grid in ${rounded([loaded])} ms\n`,
    );
    expect(Math.min(...took)).toBeLessThan(MARGIN * GOALS.draw);
    const rates: number[] = [];
    for (let i = 0; i < 5 && (i < 1 || Math.max(...rates) < GOALS.frames); i++) {
      const gaps = await page.evaluate<number[]>("scroll(1500)");
      rates.push((1000 * gaps.length) / gaps.reduce((sum, gap) => sum + gap, 0));
    }
    process.stdout.write(`scrolled at ${rounded(rates)} frames a second (goal 60)\n`);
    expect(Math.max(...rates)).toBeGreaterThan(60 / MARGIN);
  });
});

describe("128 workloads", () => {
  let fleet: Fleet;

  beforeAll(async () => {
    fleet = await startFleet();
    tabs.url = (await startServer(processes, await freePort(), processes.folder(), ["--targets", fleet.instance, "--interval", "1s"])).url;
    await until("three scrapes", PATIENCE_SECONDS, async () => {
      const scraped = await queryValue(tabs.url, "count(count_over_time(teescope_processes[1m]) >= 3)");
      return scraped === FLEET_WORKLOADS || undefined;
    });
  });

  afterAll(() => {
    fleet.close();
  });

  const folded = async (page: Page, panel: string): Promise<void> => {
    const legend = page.locator(`[data-panel="${panel}"] .legend .name`);
    await shown(() => legend.count()).toBeLessThanOrEqual(25);
    await shown(() => legend.last().textContent()).toMatch(/^the rest \(\d+\)$/);
  };
  const listed = (selector: string, at: number) => async (page: Page): Promise<void> => {
    await holds(page, `document.querySelectorAll(${JSON.stringify(selector)}).length >= ${at}`);
  };
  const table = listed('[data-panel="workloads"] tbody tr', FLEET_WORKLOADS);

  it.each<[page: string, path: string, ready: string, shows: (page: Page) => Promise<void>]>([
    ["overview", "/", chart("syscalls-by-workload"), async (page) => { await table(page); await folded(page, "syscalls-by-workload"); }],
    ["system", "/?page=system", chart("syscalls-by-workload"), (page) => folded(page, "syscalls-by-workload")],
    ["containers", "/?page=containers", chart("container-memory"), listed('[data-panel="containers"] tbody tr', FLEET_CONTAINERS)],
    ["findings", "/?page=findings", "#verdict-head", async () => { /* how many are judged is the server's affair */ }],
    ["workload", "/?page=workload", '[data-panel="workloads"] tbody tr', table],
    ["compare", "/?page=compare", "#compare-a", listed("#compare-a option", FLEET_WORKLOADS)],
    ["explore", "/?page=explore&expr=teescope_processes", chart("result-0"), listed('[data-panel="result-0"] .legend .name', 20)],
  ])("are shown on %s without freezing", async (name, path, ready, shows) => {
    const longest: number[] = [];
    for (let i = 0; i < 5 && (i < 1 || Math.min(...longest) >= GOALS.task); i++) {
      await tabs.close();
      const page = await tabs.visit("about:blank");
      await page.addInitScript("window.long = []; new PerformanceObserver((l) => window.long.push(...l.getEntries().map((e) => e.duration))).observe({ type: 'longtask', buffered: true })");
      await page.goto(tabs.url + path);
      await page.waitForSelector(ready);
      await shows(page);
      await page.waitForTimeout(1500); // a live update
      longest.push(await page.evaluate<number>("Math.max(0, ...window.long)"));
    }
    process.stdout.write(`128 workloads on ${name}: the longest task took ${rounded(longest)} ms (goal ${GOALS.task})\n`);
    expect(Math.min(...longest)).toBeLessThan(MARGIN * GOALS.task);
  });

  it("fit into a report that can be mailed", async () => {
    const file = join(processes.folder(), "report.html");
    const began = performance.now();
    await promisify(execFile)(teescopeBinary, ["report", "--server", tabs.url, "--window", "1m", "-o", file]);
    const made = performance.now();
    const page = await tabs.visit(pathToFileURL(file).href);
    await page.waitForSelector(chart("syscalls-by-workload"));
    await holds(page, `document.querySelectorAll('[data-panel][data-state="loading"]').length === 0`);
    const { size } = statSync(file);
    process.stdout.write(
      `the report of 128 workloads and ${FLEET_CONTAINERS} containers has ${(size / 1e6).toFixed(2)} MB, is made in ${((made - began) / 1000).toFixed(1)} s and drawn in ${((performance.now() - made) / 1000).toFixed(1)} s\n`,
    );
    expect(size).toBeLessThan(5_000_000);
  });
});
