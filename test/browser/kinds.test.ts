// SPDX-License-Identifier: Apache-2.0

// Panels that a real load fills without enclaves: box plots, an icicle, and charts with logarithmic scale, linked
// cursor and marks. Heat maps, histograms and gauges are in tee.test.ts.
import type { Locator } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { chart, holds, seriousViolations, shown, Tabs } from "./browser";
import { freePort, Processes, startLoad, startRedis, startTeescope } from "./processes";

const processes = new Processes();
const tabs = new Tabs();

beforeAll(async () => {
  await tabs.launch();
  startLoad(processes, await startRedis(processes));
  const more = ["--interval", "1s", "--analysis.interval", "2s", "--syscalls.time"];
  tabs.url = (await startTeescope(processes, await freePort(), processes.folder(), more)).url;
});

afterAll(async () => {
  await tabs.quit();
  await processes.stopAll();
});

afterEach(() => tabs.close());

it("draws the system calls of Redis as an icicle that keys go through", async () => {
  const page = await tabs.visit("/?page=system&range=1m");
  const panel = page.locator('[data-panel="syscall-shares"]');
  const redis = panel.locator('[role="treeitem"][aria-level="2"]', { hasText: "redis-server" });
  await redis.first().waitFor();
  await panel.locator('[role="treeitem"][aria-level="1"]').focus();
  await page.keyboard.press("ArrowDown");
  await holds(page, `document.activeElement.getAttribute("aria-level") === "2"`);
  await shown(() => page.evaluate<string>(`document.activeElement.getAttribute("aria-label")`)).toMatch(/^Workload: .+: .+, .+ of all$/);
  await redis.first().click();
  // After the zoom everything below the root is Redis.
  await holds(
    page,
    `[...document.querySelectorAll('[data-panel="syscall-shares"] [aria-level="2"]')].map((e) => e.textContent).join() === "redis-server"`,
  );
  await page.keyboard.press("Escape");
  await holds(page, `document.querySelectorAll('[data-panel="syscall-shares"] [aria-level="2"]').length > 1`);
});

it("shows small and large values on a logarithmic scale", async () => {
  const page = await tabs.visit("/?page=system&range=1m");
  await page.waitForSelector(chart("syscalls-by-workload"));
  const toggle = page.locator('[data-panel="syscalls-by-workload"]').getByRole("button", { name: "Log scale" });
  await toggle.click();
  await page.waitForSelector('[data-panel="syscalls-by-workload"] .chip[aria-pressed="true"]');
  await page.waitForSelector(chart("syscalls-by-workload"));
  expect(await seriousViolations(page)).toEqual([]);
});

it("reads a moment by keys, on all charts at once", async () => {
  const page = await tabs.visit("/?page=system&range=1m");
  for (const id of ["syscalls-by-name", "syscalls-by-workload"]) await page.waitForSelector(chart(id));
  await page.locator('[data-panel="syscalls-by-name"] .plot').focus();
  await page.keyboard.press("ArrowLeft");
  await holds(
    page,
    `["syscalls-by-name", "syscalls-by-workload"].every((id) => /^At /.test(document.querySelector('[data-panel="' + id + '"] .at')?.textContent ?? ""))`,
  );
  const announced = page.locator('[data-panel="syscalls-by-name"] [aria-live="polite"]');
  await shown(async () => {
    await page.keyboard.press("ArrowLeft"); // the newest points can be without values
    return announced.textContent();
  }).toMatch(/: .+\/s/);
  await page.keyboard.press("Escape");
  await holds(page, `/^Newest/.test(document.querySelector('[data-panel="syscalls-by-workload"] .at').textContent)`);
});

it("keeps the moment that a key chose, while data arrives and charts are made again", async () => {
  const page = await tabs.visit("/?page=system&range=5m");
  const [own, other] = ["syscalls-by-name", "syscalls-by-workload"].map((id) => page.locator(`[data-panel="${id}"]`)) as [Locator, Locator];
  for (const id of ["syscalls-by-name", "syscalls-by-workload"]) await page.waitForSelector(chart(id));
  await own.locator(".plot").focus();
  await page.keyboard.press("ArrowLeft"); // the newest point is now
  await page.keyboard.press("ArrowLeft"); // the one before is on the grid of the next answers too
  await shown(() => own.locator(".at").textContent()).toMatch(/^At \d\d:\d\d:\d\d/);
  const clock = (await own.locator(".at").textContent())?.slice(0, 11) ?? "";
  for (let arrived = 0; arrived < 3; arrived++) {
    const before = await other.locator(".plot").getAttribute("aria-label");
    await shown(() => other.locator(".plot").getAttribute("aria-label")).not.toBe(before);
  }
  const scale = other.getByRole("button", { name: "Log scale" }); // another scale is another chart
  await scale.focus();
  await page.keyboard.press("Enter");
  await page.waitForSelector('[data-panel="syscalls-by-workload"] .chip[aria-pressed="true"]');
  await shown(() => own.locator(".at").textContent()).toContain(clock);
  await shown(() => other.locator(".at").textContent()).toContain(clock);
});

it("marks its own start, and hides marks on all charts", async () => {
  const page = await tabs.visit("/?page=system&range=1h");
  const marks = page.locator('[data-panel="syscalls-by-workload"] details.marks');
  await marks.locator("summary").click();
  await marks.locator("li", { hasText: /teescope on .+ started/ }).first().waitFor();
  await marks.getByRole("button", { name: "Hide marks" }).click();
  await holds(page, `document.querySelectorAll("details.marks").length === 0`);
  await page.reload();
  await page.locator('[data-panel="syscalls-by-name"]').getByRole("button", { name: "Show marks" }).click();
  await page.waitForSelector('[data-panel="syscalls-by-workload"] details.marks');
});

it("draws box plots of the window, with a table for screen readers", async () => {
  const page = await tabs.visit("/?page=findings&range=1m");
  const panel = page.locator('[data-panel="windows"][data-state="ready"]');
  const redis = panel.locator("tbody tr", { hasText: "redis-server" }).first();
  await redis.waitFor();
  await shown(() => redis.textContent()).toMatch(/least .+, quartiles .+, .+ and .+, greatest .+, (no|\d+) outliers/);
  await panel.locator("select").selectOption("teescope_cpu_seconds");
  await panel.getByText("CPU cores").waitFor();
  expect(await seriousViolations(page)).toEqual([]);
});
