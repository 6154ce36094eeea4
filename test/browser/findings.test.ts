// SPDX-License-Identifier: Apache-2.0

// A finding, from a real program that polls to the page that says so.
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { launch, openPage, screenshot, seriousViolations, type Watched } from "./browser";
import { freePort, Processes, startProgram, startTeescope, type Teescope } from "./processes";

const processes = new Processes();
let browser: Browser;
let teescope: Teescope;
let open: Watched[] = [];

const PROGRAM = "browserpoll";
const CARD = `[data-finding="polling-loop"][data-workload="${PROGRAM}"]`;

beforeAll(async () => {
  browser = await launch();
  await startProgram(processes, "poll", PROGRAM);
  const fast = ["--interval", "1s", "--analysis.interval", "2s", "--analysis.window", "12s"];
  teescope = await startTeescope(processes, await freePort(), processes.folder(), fast);
});

afterAll(async () => {
  await browser.close();
  await processes.stopAll();
});

async function visit(path: string, options: Parameters<typeof openPage>[2] = {}): Promise<Page> {
  const watched = await openPage(browser, teescope.url + path, options);
  open.push(watched);
  return watched.page;
}

async function closeAll(): Promise<void> {
  const all = open;
  open = [];
  for (const { close } of all) await close();
  expect(all.flatMap((w) => w.complaints)).toEqual([]);
  expect(all.flatMap((w) => w.strangers)).toEqual([]);
}

it("names it on the overview, and leads to its evidence and its chart", async () => {
  const page = await visit("/");
  const row = page.locator(`[data-panel="findings"] ${CARD}`);
  await row.waitFor({ timeout: 60_000 });
  expect(await page.locator("#causes-head").textContent()).toMatch(/finding/);
  await row.getByRole("link", { name: "Evidence" }).click();
  const card = page.locator(`[data-panel="all-findings"] ${CARD}`);
  await card.waitFor();
  const text = (await card.textContent()) ?? "";
  for (const part of ["epoll_wait", "Advice", "Evidence", "n=", "rule polling-loop", "Sources"]) expect(text).toContain(part);
  expect(await page.locator("#verdict-head").textContent()).toMatch(/workloads? over 12 s/);
  await screenshot(page, "findings");
  await card.getByRole("link", { name: "System calls by name" }).first().click();
  expect(new URL(page.url()).search).toBe(`?page=system&w=${PROGRAM}`);
  await page.waitForSelector('[data-panel="syscalls-by-name"][data-state="ready"]');
  await closeAll();
});

it("copies a query that the server answers", async () => {
  const page = await visit("/?page=findings", { permissions: ["clipboard-read", "clipboard-write"] });
  const card = page.locator(CARD);
  await card.waitFor({ timeout: 60_000 });
  await card.getByRole("button", { name: /^Copy the query/ }).first().click();
  await card.getByText("Copied").first().waitFor();
  const query = await page.evaluate("navigator.clipboard.readText()");
  const answer = await fetch(`${teescope.url}/api/v1/query?${new URLSearchParams({ query: String(query) }).toString()}`);
  const { data } = (await answer.json()) as { data: { result: unknown[] } };
  expect(data.result.length).toBeGreaterThan(0);
  await closeAll();
});

it("is left out by the filter of another workload, and reached with the keyboard", async () => {
  const page = await visit(`/?w=nobody`);
  await page.keyboard.press("2");
  await page.waitForSelector("#verdict-head");
  expect(await page.locator(CARD).count()).toBe(0);
  await page.keyboard.press("c");
  await page.locator(CARD).waitFor({ timeout: 60_000 });
  await closeAll();
});

it.each(["light", "dark"] as const)("can be read by everybody in the %s theme", async (colorScheme) => {
  const page = await visit("/?page=findings", { colorScheme, viewport: { width: 390, height: 844 } });
  await page.locator(CARD).waitFor({ timeout: 60_000 });
  await page.locator(`${CARD} summary`).first().click();
  expect(await seriousViolations(page)).toEqual([]);
  const wider = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth");
  expect(wider).toBeLessThanOrEqual(0);
  await closeAll();
});
