// SPDX-License-Identifier: Apache-2.0

// Filters, time zone and typed ranges. A real Redis runs on this machine. A simulated machine has more containers
// than fit into a list.
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { queryString, screenshot, seriousViolations, shown, Tabs } from "./browser";
import { type Fleet, FLEET_CONTAINERS, FLEET_WORKLOADS, fleetId, instanceHere, startFleet } from "./fleet";
import { freePort, PATIENCE_SECONDS, Processes, startLoad, startRedis, startTeescope, type Teescope, until } from "./processes";

const processes = new Processes();
/** The console reports the invalid pattern that the server refuses. */
const tabs = new Tabs(/status of 400 .*\/api\/v1\/format_query\?/);
let teescope: Teescope;
let fleet: Fleet;
/** The label instance of this machine. */
let here: string;

beforeAll(async () => {
  await tabs.launch();
  fleet = await startFleet();
  startLoad(processes, await startRedis(processes));
  teescope = await startTeescope(processes, await freePort(), processes.folder(), ["--interval", "1s", "--targets", fleet.instance]);
  tabs.url = teescope.url;
  here = await instanceHere(teescope.url, fleet);
});

afterAll(async () => {
  await tabs.quit();
  fleet.close();
  await processes.stopAll();
});

afterEach(() => tabs.close());

/** Waits until the first column of the table of workloads meets a condition. */
async function rows(page: Page, wanted: (names: string[]) => boolean, what: string): Promise<void> {
  const names = page.locator('[data-panel="workloads"][data-state="ready"]:not([data-stale]) tbody th .row-switch');
  await until(what, PATIENCE_SECONDS, async () => wanted(await names.allTextContents()) || undefined);
}

it("combines a node, a runtime and a container by the keyboard, shows chips, and Back takes one after another away", async () => {
  const page = await tabs.visit();
  await rows(page, (names) => names.includes("redis-server") && names.length > FLEET_WORKLOADS, "both machines");
  await page.keyboard.press("/");
  await page.locator(".kinds button", { hasText: "runtime" }).click();
  await page.locator(".search").fill("mad");
  await page.locator(".choices label", { hasText: "made" }).waitFor();
  await page.keyboard.press("Enter");
  await queryString(page).toBe("?runtime=made");
  await rows(page, (names) => names.length === 13 && names.includes(fleetId(120)), "the thirteen of that runtime");
  await page.locator(".kinds button", { hasText: "container" }).click();
  await page.locator(".search").fill("app");
  await page.locator(".choices label", { hasText: "app" }).first().waitFor();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Escape");
  await queryString(page).toBe("?container=app&runtime=made");
  await rows(page, (names) => [...names].sort().join() === [0, 40, 80, 120].map(fleetId).join(), "those that are both");
  await page.reload();
  await rows(page, (names) => names.length === 4, "the same after a reload");
  await shown(() => page.locator(".chips").textContent()).toContain("4 workloads");
  await page.goBack();
  await queryString(page).toBe("?runtime=made");
  await page.locator('[data-chip="runtime=made"]').click();
  await queryString(page).toBe("");
  await page.goto(`${teescope.url}/?node=${here}`);
  await rows(page, (names) => names.includes("redis-server") && !names.includes(fleetId(1)), "this machine alone");
  await page.keyboard.press("c");
  await queryString(page).toBe("");
});

it("has the server check a pattern while it is typed, and queries no panel with a wrong one", async () => {
  const page = await tabs.visit("/?page=system");
  const refused: string[] = [];
  page.on("response", (response) => {
    if (response.status() >= 400 && ![502, 503].includes(response.status()) && !response.url().includes("/api/v1/format_query?")) refused.push(response.url());
  });
  await page.keyboard.press("/");
  await page.getByRole("button", { name: "Regular expression" }).click();
  await page.locator(".search").fill("redis-(server|");
  await page.locator(".pattern-note .problem", { hasText: "missing closing ): `redis-(server|`" }).waitFor();
  await page.keyboard.press("Enter");
  await queryString(page).toBe("?page=system");
  await page.keyboard.type("x).*"); // fill leaves the cursor at the end
  await page.locator(".pattern-note", { hasText: /Matches 1 of \d+/ }).waitFor();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Escape");
  await queryString(page).toBe("?page=system&w.re=redis-(server|x).*");
  const legend = page.locator('[data-panel="syscalls-by-workload"][data-state="ready"]:not([data-stale]) .legend .name');
  await until("Redis alone", PATIENCE_SECONDS, async () => (await legend.allTextContents()).join() === `redis-server · ${here}` || undefined);
  expect(refused).toEqual([]);
});

it("stays usable with hundreds of names, narrow and wide, light and dark", async () => {
  for (const [width, colorScheme] of [[360, "light"], [2560, "dark"]] as const) {
    const page = await tabs.visit(`/?page=infrastructure&pod=shop-8&w.re=abc.*&runtime=made&node=${fleet.instance}`, { viewport: { width, height: 1000 }, colorScheme });
    await page.locator("[data-panel]").first().waitFor();
    await page.keyboard.press("/");
    const kind = page.locator(".kinds button", { hasText: "container" });
    await until("the count", PATIENCE_SECONDS, async () => /\d+/.test((await kind.textContent()) ?? "") || undefined);
    await kind.click();
    await page.getByRole("button", { name: "Show", exact: true }).click(); // no container is within all the filters
    await page.locator(".choices li").first().waitFor();
    await shown(() => page.locator(".choices li").count()).toBeLessThanOrEqual(50);
    await shown(() => page.locator(".popover-panel").textContent()).toMatch(/\d+ more: type a part of the name/);
    await page.locator(".search").fill(`cache-${FLEET_CONTAINERS - 1}`);
    await until("one choice", PATIENCE_SECONDS, async () => (await page.locator(".choices li").count()) === 1 || undefined);
    expect(await seriousViolations(page), colorScheme).toEqual([]);
    await shown(() => page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(width);
    await screenshot(page, `filters-${colorScheme}-${width}`);
  }
});

it("takes a typed range and the zone into the URL, and Back returns from each", async () => {
  const page = await tabs.visit("/?page=system", { timezoneId: "Asia/Kolkata" });
  const face = page.locator("#range-button");
  await shown(() => face.textContent()).toContain("UTC+5:30");
  await page.keyboard.press("r");
  await page.locator("[name=typed-range]").fill("90");
  await page.keyboard.press("Enter");
  await page.locator(".typed .problem", { hasText: "units" }).waitFor();
  await page.locator("[name=typed-range]").fill("90m");
  await page.keyboard.press("Enter");
  await queryString(page).toBe("?page=system&range=90m");
  await page.keyboard.press("r");
  await page.locator(".zones button", { hasText: /^UTC$/ }).click();
  await queryString(page).toBe("?page=system&range=90m&tz=utc");
  await shown(() => page.locator(".absolute").textContent()).toContain("From (UTC)");
  await page.keyboard.press("Escape");
  await page.locator('[data-panel="syscalls-by-workload"][data-state="ready"] canvas').waitFor();
  await page.goBack();
  await shown(() => face.textContent()).toMatch(/Last 90 min · UTC\+5:30/);
  await page.goBack();
  await queryString(page).toBe("?page=system");
  await page.goto(`${teescope.url}/?page=system&from=2026-01-15T08:00:00Z&to=2026-01-15T09:00:00Z`);
  await shown(() => face.textContent()).toContain("15 Jan 08:00:00 – 15 Jan 09:00:00 · UTC");
  await queryString(page).toContain("tz=utc"); // the browser remembers the zone
});
