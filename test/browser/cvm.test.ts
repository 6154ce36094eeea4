// SPDX-License-Identifier: Apache-2.0

// The TEE page on virtual machines and bounce buffers: `teescope demo cvm` boots a machine that runs out of bounce buffers and has
// two virtual machines in it.
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { chart, screenshot, seriousViolations, shown, Tabs } from "./browser";
import { START_MILLISECONDS, startDemo } from "./demos";
import { Processes, queryValue, type Started, until } from "./processes";

const DATA_SECONDS = 900;

const processes = new Processes();
const tabs = new Tabs();
let demo: Started;

beforeAll(async () => {
  await tabs.launch();
  demo = await startDemo(processes, tabs, "cvm");
}, START_MILLISECONDS);

afterEach(() => tabs.close());

afterAll(async () => {
  await tabs.quit();
  await processes.stopAll();
});

it("shows the exit storm, and buffers without room that recover", async () => {
  // The times without failures pass. So these queries look back.
  const lookback = (condition: string) => `max_over_time((${condition})[15m:5s])`;
  for (const [what, query] of [
    ["a storm beside an idle machine", lookback('increase(teescope_vm_exits_total{vm="storm",reason="cpuid"}[2m]) > 1000 and on () increase(teescope_vm_exits_total{vm="idle",reason="cpuid"}[2m]) == 0')],
    ["mappings that fail", "sum(teescope_bounce_failures_total) > 0"],
    ["data that is copied afterwards", lookback("sum(increase(teescope_bounce_bytes_total[1m])) > 0 and on () sum(increase(teescope_bounce_failures_total[1m])) == 0 and on () sum(teescope_bounce_failures_total) > 0")],
  ] as const) {
    await until(what, DATA_SECONDS, () => queryValue(tabs.url, query)).catch((error: unknown) => {
      throw new Error(`${String(error)}:\n${demo.output}`);
    });
  }
  const page = await tabs.visit("/?page=tee&range=15m", { viewport: { width: 1280, height: 1800 } });
  page.setDefaultTimeout(300_000);
  for (const id of ["vm-exits", "vm-outside", "vm-userspace", "bounce-pool", "bounce-bytes", "bounce-failures", "guest-conversions", "guest-waits"]) {
    await page.waitForSelector(chart(id));
  }
  const table = page.locator('[data-panel="vm-table"] tbody');
  for (const text of ["storm", "qemu-storm", "idle", "qemu-idle"]) await shown(() => table.textContent()).toContain(text);
  await page.waitForSelector('[data-panel="guest-exceptions"][data-state="empty"]'); // no TEE causes them here
  expect(await seriousViolations(page)).toEqual([]);
  await screenshot(page, "tee-virtual");
}, (4 * DATA_SECONDS + 120) * 1000);
