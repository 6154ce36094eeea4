// SPDX-License-Identifier: Apache-2.0

// A finding about a real program that polls, from the program to the page.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { queryString, screenshot, seriousViolations, shown, Tabs } from "./browser";
import { freePort, PATIENCE_SECONDS, Processes, queryValue, startProgram, startTeescope, type Teescope, until } from "./processes";

const processes = new Processes();
const tabs = new Tabs();
let teescope: Teescope;

const PROGRAM = "browserpoll";
/** Runs as under gramine-direct: with its command line, and a manifest beside the application. */
const IN_GRAMINE = "browsergramine";
const SECRET = "hunter2-of-the-database";
let manifest: string;
const CARD = `[data-finding="polling-loop"][data-workload="${PROGRAM}"]`;

beforeAll(async () => {
  await tabs.launch();
  const app = join(processes.folder(), "app");
  manifest = `${app}.manifest`;
  writeFileSync(manifest, `loader.env.PASSWORD = "${SECRET}"\nsgx.max_threads = 2\nloader.env.TOKEN = "${SECRET}"\n`);
  await startProgram(processes, "steady", IN_GRAMINE, ["/usr/lib/gramine/direct/libpal.so", "init", app]);
  await startProgram(processes, "poll", PROGRAM);
  const fast = ["--interval", "1s", "--analysis.interval", "2s", "--analysis.window", "12s"];
  teescope = await startTeescope(processes, await freePort(), processes.folder(), fast);
  tabs.url = teescope.url;
});

afterAll(async () => {
  await tabs.quit();
  await processes.stopAll();
});

afterEach(() => tabs.close());

it("names it on the overview, and leads to its evidence and its chart", async () => {
  const page = await tabs.visit("/");
  const row = page.locator(`[data-panel="findings"] ${CARD}`);
  await row.waitFor();
  await shown(() => page.locator("#causes-head").textContent()).toMatch(/finding/);
  await row.getByRole("link", { name: "Evidence" }).click();
  const card = page.locator(`[data-panel="all-findings"] ${CARD}`);
  await card.waitFor();
  const text = (await card.textContent()) ?? "";
  for (const part of ["epoll_wait", "Advice", "Evidence", "n=", "rule polling-loop", "Sources"]) expect(text).toContain(part);
  await shown(() => page.locator("#verdict-head").textContent()).toMatch(/workloads? over 12 s/);
  await screenshot(page, "findings");
  await card.getByRole("link", { name: "System calls by name" }).first().click();
  await queryString(page).toBe(`?page=system&w=${PROGRAM}`);
  await page.waitForSelector('[data-panel="syscalls-by-name"][data-state="ready"]');
});

it("says what limits the program, as the API does", async () => {
  const page = await tabs.visit(`/?page=workload&w=${PROGRAM}`);
  const limit = page.locator('[data-panel="findings"]').getByText(`What limits ${PROGRAM}: `);
  await limit.waitFor();
  const said = new Set<string>(); // the page follows the API within seconds
  await shown(async () => {
    const report = (await (await fetch(`${teescope.url}/api/findings`)).json()) as { limits: { workload: string; name: string; because: string }[] };
    for (const { workload, name, because } of report.limits) said.add(`What limits ${workload}: ${name} (${because}).`);
    return said.has((await limit.textContent()) ?? "");
  }).toBe(true);
  await screenshot(page, "limit");
});

it("says how the estimates of findings go together, and what no second look has confirmed", async () => {
  const page = await tabs.visit(`/?page=findings&w=${PROGRAM}`);
  const card = page.locator(CARD);
  await card.waitFor();
  await page.route("**/api/findings*", async (route) => {
    const answer = await route.fetch();
    const report = (await answer.json()) as { findings: { workload: string }[] };
    const findings = report.findings.map((f) => (f.workload === PROGRAM ? { ...f, adds: ["a", "b"], overlaps: ["b", "c"], unconfirmed: true } : f));
    await route.fulfill({ response: answer, json: { ...report, findings } });
  });
  await card.getByText("adds to the estimates of a, b").waitFor();
  const text = (await card.textContent()) ?? "";
  for (const part of ["without the part that these findings count: b", "does not add to: c", "not confirmed by a second look"]) expect(text).toContain(part);
});

it("copies a query that the server answers", async () => {
  const page = await tabs.visit("/?page=findings", { permissions: ["clipboard-read", "clipboard-write"] });
  const card = page.locator(CARD);
  await card.waitFor();
  await card.getByRole("button", { name: /^Copy the query/ }).first().click();
  await card.getByText("Copied").first().waitFor();
  const query = await page.evaluate("navigator.clipboard.readText()");
  await until("an answer to it", PATIENCE_SECONDS, () => queryValue(teescope.url, String(query)));
});

it("is left out by the filter of another workload, and reached with the keyboard", async () => {
  const page = await tabs.visit(`/?w=nobody`);
  await page.keyboard.press("2");
  await page.waitForSelector("#verdict-head");
  await shown(() => page.locator(CARD).count()).toBe(0);
  await page.keyboard.press("c");
  await page.locator(CARD).waitFor();
});

it.each(["light", "dark"] as const)("has no accessibility violations in the %s theme", async (colorScheme) => {
  const page = await tabs.visit("/?page=findings", { colorScheme, viewport: { width: 390, height: 844 } });
  await page.locator(CARD).waitFor();
  await page.locator(`${CARD} summary`).first().click();
  expect(await seriousViolations(page)).toEqual([]);
  const wider = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth");
  expect(wider).toBeLessThanOrEqual(0);
});

it("mutes a finding with a reason, lists it when asked, and ends the silence", async () => {
  const page = await tabs.visit(`/?page=findings&w=${PROGRAM}`);
  const card = page.locator(CARD);
  await card.waitFor();
  await card.locator("summary", { hasText: "Mute" }).click();
  const form = card.locator("form");
  await form.getByLabel("Kind").selectOption("works-as-intended");
  await form.getByLabel("Reason").fill("it is a test of polling");
  await form.getByLabel("Days").fill("2");
  await screenshot(page, "mute");
  await form.getByRole("button", { name: "Mute" }).click();
  await shown(() => card.count()).toBe(0);
  const list = page.getByRole("button", { name: /^Show muted \(\d+\)$/ });
  await list.click();
  await card.waitFor();
  const text = (await card.textContent()) ?? "";
  for (const part of ["works-as-intended", "it is a test of polling", "until"]) expect(text).toContain(part);
  await card.getByRole("button", { name: "Unmute" }).click();
  await shown(() => card.getByRole("button", { name: "Unmute" }).count()).toBe(0);
  await card.locator("summary", { hasText: "Mute" }).waitFor();
});

// A finding about an enclave needs one, and this machine has none. So the finding about polling is attributed to the program in
// Gramine. The program, its manifest, the agent that reads it, and the server's answer are real.
it("shows the lines of the manifest to change, and no other line", async () => {
  const page = await tabs.visit("/?page=findings");
  await page.route("**/api/findings*", async (route) => {
    const answer = await route.fetch();
    const report = (await answer.json()) as { findings: { workload: string }[] };
    const moved = report.findings.map((f) => (f.workload === PROGRAM ? { ...f, workload: IN_GRAMINE, settings: ["at least 4 (few-threads)"] } : f));
    await route.fulfill({ response: answer, json: { ...report, findings: moved } });
  });
  const card = page.locator(`[data-finding="polling-loop"][data-workload="${IN_GRAMINE}"]`);
  await card.getByText("at least 4 (few-threads)").waitFor();
  await card.getByRole("button", { name: "Show the lines" }).click();
  await card.getByText(`--- ${manifest}`, { exact: true }).waitFor();
  const lines = await card.locator(".query code").allTextContents();
  const from = lines.indexOf(`--- ${manifest}`);
  expect(lines.slice(from, from + 5)).toEqual([`--- ${manifest}`, `+++ ${manifest}.advised`, "@@ -2,1 +2,1 @@", "-sgx.max_threads = 2", "+sgx.max_threads = 4"]);
  expect(lines[0]).toBe(`No line of ${manifest} is about this cause.`);
  expect(await card.locator(".query .no").allTextContents()).toContain("-sgx.max_threads = 2");
  expect(await card.locator(".query .yes").allTextContents()).toContain("+sgx.max_threads = 4");
  expect(await page.content()).not.toContain(SECRET);
  await screenshot(page, "manifest-lines");
  expect(await seriousViolations(page)).toEqual([]);
});
