// SPDX-License-Identifier: Apache-2.0

// Two machines with a workload of the same name: a real Redis on this machine, and a simulated one. Also which
// settings the address contains.
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { chart, queryString, seriousViolations, shown, Tabs } from "./browser";
import { type Fleet, instanceHere, startFleet } from "./fleet";
import { freePort, PATIENCE_SECONDS, Processes, startLoad, startRedis, startTeescope, until } from "./processes";

const REDIS = "redis-server";
const processes = new Processes();
/** The console reports the invalid pattern that the server refuses. */
const tabs = new Tabs(/status of 400 .*\/api\/v1\/format_query\?/);
let fleet: Fleet;
/** The label instance of this machine. */
let here: string;

beforeAll(async () => {
  await tabs.launch();
  fleet = await startFleet({ programs: [REDIS] });
  startLoad(processes, await startRedis(processes));
  const { url } = await startTeescope(processes, await freePort(), processes.folder(), ["--interval", "1s", "--targets", fleet.instance]);
  tabs.url = url;
  here = await instanceHere(url, fleet, `teescope_syscalls_total{workload="${REDIS}"}`);
});

afterAll(async () => {
  await tabs.quit();
  fleet.close();
  await processes.stopAll();
});

afterEach(() => tabs.close());

/** Waits until the legend of a chart has exactly these names. */
async function legend(page: Page, panel: string, wanted: readonly string[]): Promise<void> {
  const names = page.locator(`[data-panel="${panel}"][data-state="ready"]:not([data-stale]) .legend .name`);
  await until(`the legend ${wanted.join(", ")}`, PATIENCE_SECONDS, async () => [...(await names.allTextContents())].sort().join() === [...wanted].sort().join() || undefined);
}

it("distinguishes workloads of the same name on two machines, and links to the right one", async () => {
  const page = await tabs.visit("/?w=" + REDIS);
  const row = page.locator('[data-panel="workloads"] tbody tr', { hasText: fleet.instance }).filter({ has: page.locator("th", { hasText: REDIS }) });
  await row.waitFor();
  await shown(() => page.locator('[data-panel="workloads"] tbody tr.chosen').count()).toBe(2);
  await row.locator(".row-link").click();
  await queryString(page).toBe(`?page=workload&w=${REDIS}&node=${fleet.instance}`);
  await until("its machine", PATIENCE_SECONDS, async () => (await page.locator('[data-panel="identity"] dl').textContent())?.includes(fleet.instance) || undefined);
  await page.goto(`${tabs.url}/?page=workload&w=${REDIS}`);
  await page.locator('[data-panel="choose-node"] .chip', { hasText: here }).click();
  await queryString(page).toBe(`?page=workload&w=${REDIS}&node=${here}`);
  await page.locator(chart("syscalls-by-name")).waitFor();

  await page.goto(`${tabs.url}/?page=system&w=${REDIS}`);
  await legend(page, "syscalls-by-workload", [here, fleet.instance].map((node) => `${REDIS} · ${node}`));
  await page.goto(`${tabs.url}/?page=system&w=${REDIS}&node=${here}`);
  await legend(page, "syscalls-by-workload", [REDIS]);

  await page.goto(`${tabs.url}/?page=compare`);
  await page.locator("#compare-a option", { hasText: `${REDIS} · ${here}` }).waitFor({ state: "attached" });
  await page.locator("#compare-a").selectOption({ label: `${REDIS} · ${here}` });
  await page.locator("#compare-b").selectOption({ label: `${REDIS} · ${fleet.instance}` });
  await queryString(page).toBe(`?page=compare&a=${REDIS}&anode=${here}&b=${REDIS}&bnode=${fleet.instance}`);
  await page.locator('[data-panel="ratios"] th', { hasText: fleet.instance }).waitFor();
  await page.goto(`${tabs.url}/?page=compare&a=${REDIS}&b=kernel`);
  await page.getByText(`On which node is ${REDIS}?`).waitFor();
});

it("counts choices within the other filters, and keeps the rest in reach", async () => {
  const page = await tabs.visit("/?container=cache-3");
  await page.keyboard.press("/");
  await page.locator(".choices label", { hasText: "abc000000003" }).waitFor();
  await shown(() => page.locator(".choices label").count()).toBe(1);
  const outside = page.locator(".popover-panel", { hasText: /\d+ more outside the other filters/ });
  await outside.waitFor();
  await page.locator(".search").fill("redis");
  await page.getByText("Nothing matches the other filters.").waitFor();
  await page.getByRole("button", { name: "Show", exact: true }).click();
  await page.locator(".choices .outside", { hasText: REDIS }).waitFor();
  // The filter of containers does not narrow the list of containers. Arrow keys change the kind.
  await page.getByRole("radio", { name: /^workload/ }).focus();
  await page.keyboard.press("ArrowRight");
  await shown(() => page.getByRole("radio", { name: /^container/ }).getAttribute("aria-checked")).toBe("true");
  await page.locator(".search").fill("cache-7");
  await page.locator(".choices li:not(.outside)", { hasText: "cache-7" }).first().waitFor();
  expect(await seriousViolations(page)).toEqual([]);
});

it("has how panels are set in the address: reload and Back keep it, Escape and x set it back", async () => {
  const page = await tabs.visit("/?page=system");
  const panel = page.locator('[data-panel="syscalls-by-workload"]');
  const redis = panel.locator(".legend button", { hasText: `${REDIS} · ${here}` });
  await redis.click();
  const only = `?page=system&only=syscalls-by-workload:${REDIS} · ${here}`;
  await queryString(page).toBe(only);
  await page.reload();
  await until("the one series", PATIENCE_SECONDS, async () => (await redis.getAttribute("aria-pressed")) === "true" || undefined);
  await page.locator('[data-panel="run-queue-wait"], [data-panel="cpu-migrations"]').first().scrollIntoViewIfNeeded();
  await redis.focus();
  await page.keyboard.press("Escape");
  await queryString(page).toBe("?page=system");
  await page.goBack();
  await queryString(page).toBe(only);
  await page.goto(tabs.url);
  const head = page.locator('[data-panel="workloads"] th', { hasText: "System calls" });
  await head.locator("button").click();
  await queryString(page).toBe("?sort=workloads:-System calls");
  await page.reload();
  await until("the table to be sorted by it", PATIENCE_SECONDS, async () => (await head.getAttribute("aria-sort")) === "descending" || undefined);
  await page.keyboard.press("x");
  await queryString(page).toBe("");
  await page.goto(`${tabs.url}/?sort=workloads:Nonsense&scale=nothing:log&only=workloads:x`);
  await page.locator('[data-panel="workloads"][data-state="ready"] th[aria-sort="descending"]', { hasText: "CPU cores" }).waitFor();
});

it("shows what is wrong with a pattern of the address, and queries no future time", async () => {
  const later = new Date(Date.now() + 2 * 3_600_000).toISOString().slice(0, 19);
  const before = new Date(Date.now() - 300_000).toISOString().slice(0, 19);
  const page = await tabs.visit(`/?w.re=redis-(&from=${before}Z&to=${later}Z`);
  await page.locator(".refused .problem", { hasText: "missing closing ): `redis-(`" }).waitFor();
  await page.locator('[data-panel="workloads"][data-state="ready"] .row-switch', { hasText: REDIS }).first().waitFor();
  await page.locator('[data-panel="findings"][aria-busy="false"]').waitFor();
  expect(await seriousViolations(page)).toEqual([]);
  await page.locator(".refused .chip").click();
  await queryString(page).not.toContain("redis-(");
});

it("gives Explore's values the inferred unit, or a chosen one", async () => {
  const page = await tabs.visit(`/?page=explore&show=table&expr=${encodeURIComponent(`teescope_resident_memory_bytes{workload="${REDIS}"}`)}`);
  const value = page.locator('[data-panel="result-0"][data-state="ready"] tbody td.numeric');
  await until("bytes", PATIENCE_SECONDS, async () => /[KMG]iB$/.test((await value.first().textContent()) ?? "") || undefined);
  const choice = page.getByLabel("Unit of query 1");
  await shown(() => choice.textContent()).toContain("bytes, inferred");
  await choice.selectOption("count");
  await queryString(page).toMatch(/&unit=count$/);
  await until("a plain number", PATIENCE_SECONDS, async () => /^[\d.]+[kMG]?$/.test((await value.first().textContent()) ?? "") || undefined);
});
