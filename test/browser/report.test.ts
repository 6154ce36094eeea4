// SPDX-License-Identifier: Apache-2.0

// A report of a real server under load, opened from disk. Every chart is drawn without any request.
import { execFile } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { chart, screenshot, seriousViolations, Tabs } from "./browser";
import { freePort, PATIENCE_SECONDS, Processes, startLoad, startRedis, startTeescope, teescopeBinary, until } from "./processes";

const processes = new Processes();
const execute = promisify(execFile);
const tabs = new Tabs();
let file: string;
let page: Page;
const asked: string[] = [];

beforeAll(async () => {
  await tabs.launch();
  startLoad(processes, await startRedis(processes));
  const teescope = await startTeescope(processes, await freePort(), processes.folder(), ["--interval", "1s"]);
  file = join(processes.folder(), "report.html");
  await until("a report that has system calls of Redis", PATIENCE_SECONDS, async () => {
    const query = `${teescope.url}/api/v1/query?query=${encodeURIComponent('count_over_time(teescope_syscalls_total{workload="redis-server",syscall="read"}[1m]) > 8')}`;
    const answer = (await (await fetch(query)).json()) as { data: { result: unknown[] } };
    return answer.data.result.length > 0 || undefined;
  });
  await execute(teescopeBinary, ["report", "--server", teescope.url, "--window", "1m", "-o", file]);
  await teescope.stop();
  page = await tabs.visit("about:blank");
  page.on("request", (request) => asked.push(request.url()));
  await page.goto(pathToFileURL(file).href);
  await page.waitForSelector(chart("syscalls-by-workload"));
});

afterEach(() => {
  tabs.judge();
});

afterAll(async () => {
  await tabs.quit();
  await processes.stopAll();
});

it("draws every panel with data and its PromQL, and requests nothing except the file", async () => {
  await until("all panels to have their answers", PATIENCE_SECONDS, async () => {
    const waiting = await page.locator('[data-panel][data-state="loading"], [aria-busy="true"]').count();
    return waiting === 0 || undefined;
  });
  const size = statSync(file).size;
  process.stdout.write(`the report has ${Math.round(size / 1000)} kB\n`);
  expect(size).toBeLessThan(2_000_000);
  const wrong = await page.locator('[data-panel][data-state="error"]').evaluateAll((all) => all.map((e) => e.textContent));
  expect(wrong).toEqual([]);
  for (const id of ["syscalls-by-workload", "cpu-by-mode", "context-switches", "node-cpu"]) {
    expect(await page.locator(chart(id)).count(), id).toBe(1);
  }
  expect(await page.locator('[data-panel="syscalls-by-workload"] .legend').textContent()).toContain("redis-server");
  expect(await page.locator('[data-panel="workloads"] tbody tr').count()).toBeGreaterThan(2);
  expect(await page.locator('[data-verdict="cost"] .answer').textContent()).toMatch(/CPU cores/);
  expect(await page.locator("#verdict-head").textContent()).toContain("over 60 s");
  const panels = page.locator("[data-panel][data-state]");
  const silent = await page.locator("[data-silent]").evaluateAll((all) => all.map((e) => e.getAttribute("data-silent")));
  expect((await panels.count()) + silent.length).toBeGreaterThan(60);
  expect(silent).toContain("tee-paging"); // this machine has no TEE: the report has one line instead of empty panels
  expect(await page.locator('[data-panel][data-state="empty"]').count()).toBeLessThan(5);
  expect(await page.locator("[data-panel][data-state] details code").count()).toBeGreaterThanOrEqual(await panels.count());
  expect(asked).toEqual([pathToFileURL(file).href]);
  await screenshot(page, "report");
});

it("has a contents list that leads to each part, and no serious barrier", async () => {
  const missing = await page.evaluate<string[]>(
    `[...document.querySelectorAll('nav[aria-label="Contents"] a, [data-finding] td a')].map((a) => a.getAttribute("href")).filter((h) => !document.querySelector(h))`,
  );
  expect(missing).toEqual([]);
  const twice = await page.evaluate<string[]>(
    `(() => { const ids = [...document.querySelectorAll("[id]")].map((e) => e.id); return ids.filter((id, i) => ids.indexOf(id) !== i); })()`,
  );
  expect(twice).toEqual([]);
  expect(await seriousViolations(page)).toEqual([]);
});

it("prints with everything open", async () => {
  await page.evaluate("window.dispatchEvent(new Event('beforeprint'))");
  expect(await page.locator("details:not([open])").count()).toBe(0);
  await page.evaluate("window.dispatchEvent(new Event('afterprint'))");
  expect(await page.locator("details[open]").count()).toBe(0);
});
