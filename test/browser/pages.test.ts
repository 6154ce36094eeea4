// SPDX-License-Identifier: Apache-2.0

// The pages Workload, Compare and Explore on real data: two programs that make 1,000 sleeps and 10,000 other calls a
// second, and an application's counter.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { chart, queryString, screenshot, search, shown, Tabs } from "./browser";
import { THEMES, useTheme, wrong } from "./looks";
import { freePort, PATIENCE_SECONDS, Processes, repository, startProgram, startTeescope, type Teescope, until } from "./processes";

const processes = new Processes();
const [ONE, TWO] = ["pagesone", "pagestwo"];
const CALLS = '[data-row="syscalls-by-name/getpgid"]';
let teescope: Teescope;
/** The console reports the query that the server refuses. */
const tabs = new Tabs(/status of 400/);

/** An application with a counter that grows by ten each second. */
const application = createServer((_, response) => {
  response.setHeader("Content-Type", "text/plain; version=0.0.4");
  response.end(`# TYPE pages_pieces_total counter\npages_pieces_total ${Math.floor(performance.now() / 100)}\n`);
});

beforeAll(async () => {
  await tabs.launch();
  await new Promise<void>((done) => application.listen(0, "127.0.0.1", done));
  const { port } = application.address() as AddressInfo;
  for (const name of [ONE, TWO]) await startProgram(processes, "steady", name);
  const more = ["--interval", "1s", "--overhead.budget", "100%", "--control.enabled", "--scrape", `pages=http://127.0.0.1:${port}/metrics`];
  teescope = await startTeescope(processes, await freePort(), processes.folder(), more);
  tabs.url = teescope.url;
});

afterAll(async () => {
  await tabs.quit();
  application.close();
  await processes.stopAll();
});

afterEach(() => tabs.close());

/** Returns the first number of a cell, such as "1.01k" or "×0.98". */
function figure(text: string): number {
  const [, digits, prefix] = /×?([\d.]+)(k?)/.exec(text) ?? [];
  return Number(digits) * (prefix === "k" ? 1000 : 1);
}

it("links from the table of workloads to a workload, and from a panel's query to Explore", async () => {
  const page = await tabs.visit("/?range=1m");
  await page.getByRole("link", { name: `open ${ONE}: everything about this workload` }).click();
  await queryString(page).toBe(`?page=workload&w=${ONE}&range=1m`);
  await page.waitForSelector('[data-panel="identity"][data-state="ready"]');
  const identity = (await page.locator('[data-panel="identity"]').textContent()) ?? "";
  for (const part of [ONE, "program", "Processes", "since"]) expect(identity).toContain(part);
  for (const id of ["syscalls-by-name", "cpu-by-mode", "context-switches", "resident-memory"]) {
    await page.locator(`[data-panel="${id}"]`).scrollIntoViewIfNeeded();
    await page.waitForSelector(chart(id));
  }
  await page.locator('[data-panel="workload-no-container"]').waitFor();
  await page.getByRole("button", { name: "About “System calls by name”" }).click();
  await page.locator('[data-panel="syscalls-by-name"]').getByRole("link", { name: "Explore" }).first().click(); // the second one is about the error
  await queryString(page).toContain(`teescope_syscalls_total{workload="${ONE}"}`);
  await page.waitForSelector(chart("result-0"));
  await page.keyboard.press("7");
  await page.getByRole("link", { name: "Another workload" }).click();
  await page.locator('[data-panel="choose-workload"]').waitFor();
  await page.locator('[data-panel="workloads"]').getByText(TWO).waitFor();
});

it("switches watching and timing of a workload on, says until when, and stops them", async () => {
  const page = await tabs.visit(`/?page=workload&w=${ONE}&range=1m`);
  const watched = async (): Promise<boolean> => new RegExp(`^teescope_process_threads{.*"${ONE}"`, "m").test(await (await fetch(`${teescope.url}/metrics`)).text());
  expect(await watched()).toBe(false);
  const switches = page.locator('[data-panel="switches"][data-state="ready"]');
  await switches.getByLabel("For").selectOption("60 min");
  await switches.getByLabel("Reason").fill("a browser test");
  await switches.getByRole("button", { name: "Watch" }).press("Enter");
  const watch = switches.locator('[data-kind="watch"]');
  await shown(() => watch.textContent()).toMatch(new RegExp(`^Watch workload=${ONE} until \\d\\d:\\d\\d:\\d\\d .*, (5\\d|60) min left: a browser test Stop$`));
  await until("the workload to be watched", PATIENCE_SECONDS, async () => (await watched()) || undefined);
  await page.locator('[data-panel="syscall-time"][data-state="empty"]').waitFor();
  await switches.getByRole("button", { name: "Time calls" }).click();
  await page.locator('[data-panel="syscall-time"]').scrollIntoViewIfNeeded();
  await page.waitForSelector(chart("syscall-time"));
  for (const colorScheme of THEMES) {
    await useTheme(page, colorScheme);
    expect(await wrong(page, '[data-panel="switches"]')).toEqual([]);
    await screenshot(page, `switches-${colorScheme}`);
  }
  for (const what of [`Watch workload=${ONE}`, "Time calls"]) {
    const stop = switches.getByRole("button", { name: `Stop: ${what}`, exact: true });
    await stop.click();
    await stop.waitFor({ state: "detached" });
    await shown(() => switches.getByRole("status").textContent()).toBe("Ended.");
  }
  await until("the end of watching", PATIENCE_SECONDS, async () => !(await watched()) || undefined);
});

it("switches a probe off, says until when, and switches it on again", async () => {
  const page = await tabs.visit(`/?page=workload&w=${ONE}&range=1m`);
  const metrics = async (): Promise<string> => await (await fetch(`${teescope.url}/metrics`)).text();
  const counted = async (): Promise<boolean> => new RegExp(`^teescope_cpu_migrations_total{.*"${ONE}"`, "m").test(await metrics());
  expect(await counted()).toBe(true);
  const switches = page.locator('[data-panel="switches"][data-state="ready"]');
  await switches.getByLabel("Probe").selectOption("cpu_migration");
  await switches.getByRole("button", { name: "Switch off" }).click();
  await shown(() => switches.locator('[data-kind="pause"]').textContent()).toMatch(/^Probe off: cpu_migration until \d\d:\d\d:\d\d /);
  await until("the probe to be off", PATIENCE_SECONDS, async () => !(await counted()) || undefined);
  expect(await metrics()).toMatch(/^teescope_probe_attached{probe="cpu_migration",.*"off by request until 20.*"} 0$/m);
  for (const colorScheme of THEMES) {
    await useTheme(page, colorScheme);
    expect(await wrong(page, '[data-panel="switches"]')).toEqual([]);
  }
  await switches.getByRole("button", { name: "Stop: Probe off: cpu_migration", exact: true }).click();
  await until("the probe to be on again", PATIENCE_SECONDS, async () => (await counted()) || undefined);
});

it("compares two workloads for each sleep, which are 1,000 calls for 100 on both sides", async () => {
  const page = await tabs.visit("/?page=compare&range=1m");
  await page.locator('[data-panel="compare-none"]').waitFor();
  await page.selectOption("#compare-a", ONE);
  await page.selectOption("#compare-b", TWO);
  await page.selectOption("#compare-per", "call:");
  await page.fill("#compare-call", "clock_nanosleep");
  await page.keyboard.press("Enter");
  await until("the address to hold the comparison", PATIENCE_SECONDS, () => Promise.resolve(search(page).endsWith(`&a=${ONE}&b=${TWO}&per=call:clock_nanosleep`) || undefined));
  await page.reload();
  const row = page.locator(CALLS);
  await row.waitFor();
  const cells = async (): Promise<string[]> => (await row.locator("td").allTextContents()).map((text) => text.trim());
  // A verdict needs several points, and one is scraped each second.
  await page.locator(`${CALLS}:not([data-verdict="few"])`).waitFor();
  const [ratio = "", , a = "", b = ""] = await cells();
  for (const side of [a, b]) {
    expect(figure(side)).toBeGreaterThan(900);
    expect(figure(side)).toBeLessThan(1100);
    expect(side).toMatch(/n \d+$/);
  }
  expect(figure(ratio)).toBeGreaterThan(0.9);
  expect(figure(ratio)).toBeLessThan(1.1);
  await shown(() => page.locator("#ratios-head").textContent()).toMatch(/^Per 100 calls of clock_nanosleep/);
  await page.waitForSelector('[data-panel="pair-cpu-by-workload/total"] .plot canvas');
});

// What the recordings are is in test/cases/recorded/labels.yaml: only one of them wrote each request to the disk.
it("keeps recorded runs that are opened, compares those that are chosen, and deletes them", async () => {
  const recorded = ["redis-quiet.tsrun", "redis-fsync.tsrun"];
  const page = await tabs.visit("/?page=compare");
  const panel = page.locator('[data-panel="runs"]');
  await panel.locator("input[type=file]").setInputFiles(recorded.map((file) => join(repository, "test/cases/recorded", file)));
  for (const file of recorded) await panel.getByRole("checkbox", { name: file }).check();
  const row = panel.frameLocator("iframe").locator("tr", { hasText: "fdatasync" });
  await shown(async () => (await row.first().locator("td, th").allTextContents()).slice(2, 4).join(" ")).toMatch(/^0 \d{3}$/);
  for (const file of recorded) await shown(() => panel.frameLocator("iframe").locator("body").textContent()).toContain(file);
  expect(await wrong(page, '[data-panel="runs"]')).toEqual([]);
  await screenshot(page, "recorded-runs");
  await panel.getByRole("button", { name: "Delete them" }).click();
  await shown(() => panel.getByRole("checkbox").count()).toBe(0);
});

it("compares one workload with its past, divided by a counter of the application", async () => {
  const page = await tabs.visit(`/?page=compare&range=1m&a=${ONE}&offset=5s&per=pages_pieces_total`);
  await page.locator(`${CALLS}:not([data-verdict="few"])`).waitFor();
  await shown(() => page.locator("#ratios-head").textContent()).toContain("100 of pages_pieces");
  await shown(() => page.locator(".ratios thead").textContent()).toContain("5 s earlier");
  const ratio = figure((await page.locator(`${CALLS} td`).first().textContent()) ?? "");
  expect(ratio).toBeGreaterThan(0.5);
  expect(ratio).toBeLessThan(2);
  await page.fill("#compare-offset", "soon");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").filter({ hasText: "is not a duration" }).waitFor();
});

it("completes a query by keyboard, draws it, keeps it in the address, and shows where one is wrong", async () => {
  const page = await tabs.visit("/?page=explore&range=1m");
  const query = page.locator("#query-0");
  const option = (name: string): Promise<void> => page.getByRole("option", { name }).first().waitFor();
  await query.click();
  for (const [typed, offered] of [["teescope_syscalls_t", "teescope_syscalls_total"], ["{worklo", "workload"], [ONE, ONE]] as const) {
    await page.keyboard.type(typed);
    await option(offered);
    await page.keyboard.press("Tab");
  }
  await page.keyboard.type("}");
  const written = `teescope_syscalls_total{workload="${ONE}"}`;
  await shown(() => query.inputValue()).toBe(written);
  await page.keyboard.press("Enter");
  await page.waitForSelector(chart("result-0"));
  await queryString(page).toBe(`?page=explore&range=1m&expr=${written}`);
  await page.reload();
  await shown(() => query.inputValue()).toBe(written);
  await page.getByRole("radio", { name: "Table at its end" }).click();
  await page.locator('[data-panel="result-0"] td', { hasText: "getpgid" }).waitFor();
  await query.fill("rate(up)");
  await page.keyboard.press("Enter");
  const problem = page.locator(".query-problem");
  await problem.waitFor();
  await shown(() => problem.locator("pre").textContent()).toBe("rate(up)\n     ^");
  await shown(() => problem.textContent()).toMatch(/range vector.*at character 6.*such as \[1m\]/s);
  await page.goBack();
  await problem.waitFor({ state: "detached" });
  await shown(() => query.inputValue()).toBe(written);
  for (let more = 0; more < 3; more++) await page.getByRole("button", { name: "Add a query" }).click();
  await shown(() => page.getByRole("button", { name: "Add a query" }).isDisabled()).toBe(true);
});
