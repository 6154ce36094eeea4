// SPDX-License-Identifier: Apache-2.0

// The page as a user works with it: the real binary counts a real Redis, and a real browser shows it. Each test also
// checks for errors and foreign requests.
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { chart, queryString, shown, Tabs } from "./browser";
import { freePort, PATIENCE_SECONDS, Processes, sleep, startLoad, startRedis, startTeescope, type Teescope, until } from "./processes";

const processes = new Processes();
const tabs = new Tabs();
let teescope: Teescope;
/** An attempt: milliseconds from the start of teescope to the first chart with data, and of a later visit to the same chart. */
interface FirstLook {
  chart: number;
  visit: number;
}
const looks: FirstLook[] = [];
/**
 * The difference is the time for which teescope lets a user wait: its start and its first two scrapes. The time in
 * which a busy or slow machine draws any page is omitted.
 */
const waited = ({ chart, visit }: FirstLook): number => chart - visit;
/**
 * False alarms: below 6e-7. The difference exceeds the goal in 3 of 10 attempts while other programs keep 12 threads busy
 * on two processors, and twelve in a row must: 0.3^12 = 5e-7. A start that takes twice as long fails in all attempts.
 */
const ATTEMPTS = 12;
const GOAL_MS = 1500;

beforeAll(async () => {
  await tabs.launch();
  const redis = await startRedis(processes);
  startLoad(processes, redis);
  // The best attempt counts, because other programs may use the processors.
  for (;;) {
    // The browser is open already: Chromium's start is not measured.
    const port = await freePort();
    tabs.url = `http://127.0.0.1:${port}`;
    const page = await tabs.visit("/", {}, async () => {
      teescope = await startTeescope(processes, port, processes.folder());
    });
    await page.waitForSelector(chart("syscalls-by-workload"));
    const look = { chart: Date.now() - teescope.startedAt, visit: Date.now() };
    await tabs.close();
    await (await tabs.visit()).waitForSelector(chart("syscalls-by-workload"));
    look.visit = Date.now() - look.visit;
    looks.push(look);
    if (waited(look) < GOAL_MS || looks.length === ATTEMPTS) break;
    await tabs.close();
    await teescope.stop();
  }
});

afterAll(async () => {
  await tabs.quit();
  await processes.stopAll();
});

afterEach(() => tabs.close());

/** Returns the last text of a legend or table, such as "12.3k/s". */
async function textOf(page: Page, selector: string): Promise<string> {
  return (await page.locator(selector).first().textContent()) ?? "";
}

describe("the first look", () => {
  it("waits at most 1.5 seconds for the first rate after the start of teescope", () => {
    process.stdout.write(`first chart with data, and a later visit: ${looks.map((l) => `${l.chart} ${l.visit}`).join(", ")} ms\n`);
    expect(Math.min(...looks.map(waited))).toBeLessThan(GOAL_MS);
  });

  it("gives the verdict first", async () => {
    const page = await tabs.visit();
    await page.waitForSelector('[data-verdict="tee"]');
    await shown(() => textOf(page, '[data-verdict="tee"] .answer')).toMatch(/available|No TEE on this machine/);
    await shown(() => textOf(page, '[data-verdict="cost"] .answer')).toMatch(/CPU cores, .* MiB/);
    await shown(() => page.title()).toContain("teescope");
  });

  it("has Redis among the workloads, with system calls", async () => {
    const page = await tabs.visit();
    const row = page.locator('[data-panel="workloads"] tbody tr', { hasText: "redis-server" });
    await row.waitFor();
    const heads = await page.locator('[data-panel="workloads"] thead th').allTextContents();
    const calls = row.locator("td, th").nth(heads.findIndex((head) => head.includes("System calls")));
    // The load makes tens of thousands of calls per second. The first rates cover only moments.
    await until("thousands of system calls a second", PATIENCE_SECONDS, async () =>
      /^([\d.]+k|\d{4})\/s$/.test((await calls.textContent()) ?? "") || undefined,
    );
  });
});

describe("the filter", () => {
  it("is chosen with the keyboard alone, is in the URL, and survives a reload", async () => {
    const page = await tabs.visit("/?page=system");
    await page.waitForSelector(chart("syscalls-by-workload"));
    await page.keyboard.press("/");
    await page.keyboard.type("redis-ser");
    await page.locator(".choices label").first().waitFor();
    await page.keyboard.press("Enter");
    await page.keyboard.press("Escape");
    await queryString(page).toBe("?page=system&w=redis-server");
    await onlyRedis(page);
    await page.reload();
    await onlyRedis(page);
    await shown(() => textOf(page, "#filter-button")).toContain("redis-server");
    await page.keyboard.press("c");
    await queryString(page).toBe("?page=system");
  });

  it("is a click on a row of the table, and Back takes it away", async () => {
    const page = await tabs.visit();
    await page.locator(".row-switch", { hasText: "redis-server" }).click();
    await queryString(page).toBe("?w=redis-server");
    await page.goBack();
    await queryString(page).toBe("");
    await page.goForward();
    await shown(() => page.locator("tr.chosen").count()).toBe(1);
  });
});

async function onlyRedis(page: Page): Promise<void> {
  const names = page.locator('[data-panel="syscalls-by-workload"][data-state="ready"]:not([data-stale]) .legend .name');
  await until("the legend to be redis-server alone", PATIENCE_SECONDS, async () =>
    (await names.allTextContents()).join() === "redis-server" || undefined,
  );
}

describe("time", () => {
  it("changes with the range, which is in the URL and survives a reload", async () => {
    const page = await tabs.visit();
    await page.click("#range-button");
    await page.click("text=Last 15 min");
    await queryString(page).toBe("?range=15m");
    await page.reload();
    await shown(() => textOf(page, "#range-button")).toContain("Last 15 min");
    await page.keyboard.press("[");
    await queryString(page).toBe("");
  });

  it("takes an absolute range and shows it without a live tail", async () => {
    const page = await tabs.visit();
    await page.click("#range-button");
    await page.click("text=Show this time");
    await queryString(page).toMatch(/^\?from=\d{4}-\d\d-\d\dT[\d:]+Z&to=\d{4}-\d\d-\d\dT[\d:]+Z$/);
    await page.waitForSelector(chart("syscalls-by-workload"));
    await shown(() => textOf(page, ".live")).toContain("Paused");
  });

  it("zooms where a chart is dragged, and Back returns", async () => {
    const page = await tabs.visit("/?page=system");
    await page.waitForSelector(chart("syscalls-by-workload"));
    const over = page.locator('[data-panel="syscalls-by-workload"] .u-over');
    await over.hover(); // waits until its position is stable
    const box = await over.boundingBox();
    if (!box) throw new Error("the chart has no place");
    const entries = await page.evaluate(() => history.length);
    await page.mouse.move(box.x + box.width * 0.5, box.y + box.height / 2);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.9, box.y + box.height / 2, { steps: 4 });
    await page.mouse.up();
    await queryString(page).toMatch(/^\?page=system&from=/);
    // The other charts do not zoom too, each with an entry of its own.
    expect(await page.evaluate(() => history.length)).toBe(entries + 1);
    await page.goBack();
    await queryString(page).toBe("?page=system");
  });

  it("follows the clock while live, and stands still when paused", async () => {
    const page = await tabs.visit("/?page=system");
    await page.waitForSelector(chart("syscalls-by-workload"));
    const label = '[data-panel="syscalls-by-workload"] .plot';
    const spoken = (): Promise<string | null> => page.locator(label).getAttribute("aria-label");
    const before = await spoken();
    await until("a live update", PATIENCE_SECONDS, async () => ((await spoken()) === before ? undefined : true));
    await page.keyboard.press("p");
    await queryString(page).toMatch(/^\?page=system&from=/);
    const asked: URL[] = [];
    page.on("request", (request) => asked.push(new URL(request.url())));
    await sleep(6000);
    // Each chart is requested at most once more, all until the same end. Requests for facts about the server continue.
    const charts = asked.filter((url) => url.pathname.endsWith("/query_range"));
    expect([...new Set(charts.map((url) => url.searchParams.get("end")))].length).toBeLessThanOrEqual(1);
    expect(new Set(charts.map(String)).size).toBe(charts.length);
    await page.keyboard.press("p");
    await queryString(page).toBe("?page=system");
  });
});

describe("the pages", () => {
  it("shows on System why a chart is empty, and which flag enables its data", async () => {
    const page = await tabs.visit("/?page=system&w=redis-server");
    const empty = page.locator('[data-panel="syscall-time"][data-state="empty"]');
    await empty.waitFor();
    await shown(() => empty.textContent()).toContain("--syscalls.time");
  });

  it("draws every System chart with data, or shows the reason", async () => {
    const page = await tabs.visit("/?page=system");
    await page.locator("[data-panel]").first().waitFor(); // the view is loaded on demand
    const panels = await page.locator("[data-panel]").all();
    expect(panels.length).toBeGreaterThan(15);
    for (const panel of panels) {
      await panel.scrollIntoViewIfNeeded();
      const id = (await panel.getAttribute("data-panel")) ?? "";
      await shown(() => panel.getAttribute("data-state"), id).toMatch(/^(ready|empty)$/);
    }
    for (const id of ["syscalls-by-name", "context-switches", "page-faults-by-reason", "cpu-by-mode", "processes-threads"]) {
      await shown(() => page.locator(`[data-panel="${id}"]`).getAttribute("data-state"), id).toBe("ready");
    }
  });

  it("says that the whole machine is not filtered, and keeps the filter for the other pages", async () => {
    const page = await tabs.visit("/?page=infrastructure&w=redis-server");
    await shown(() => textOf(page, '[data-panel="node-cpu"] .unfiltered')).toContain("Not filtered by workload");
    await page.keyboard.press("4");
    await page.waitForSelector('[data-panel="syscalls-by-name"]');
    await shown(() => page.locator(".unfiltered").count()).toBe(0);
    await shown(() => textOf(page, "#filter-button")).toContain("redis-server");
  });

  it("shows on Status what is attached and what it costs", async () => {
    const page = await tabs.visit("/?page=status");
    for (const id of ["collectors", "probes", "programs", "maps", "build"]) {
      await page.waitForSelector(`[data-panel="${id}"][data-state="ready"] tbody tr`);
    }
    await shown(() => textOf(page, '[data-panel="targets"] tbody')).toContain("up");
  });

  it("shows a single series after a click in the legend", async () => {
    const page = await tabs.visit("/?page=system");
    await page.waitForSelector(chart("syscalls-by-name"));
    const legend = page.locator('[data-panel="syscalls-by-name"] .legend');
    await legend.locator("button").first().click();
    await shown(() => legend.locator('button[aria-pressed="true"]').count()).toBe(1); // the order of the legend changes
    await shown(() => page.locator('[data-panel="syscalls-by-name"] .legend .dim').count()).toBeGreaterThan(0);
  });
});

describe("accessibility", () => {
  it("toggles the theme and remembers it", async () => {
    const page = await tabs.visit("/", { colorScheme: "light" });
    const ground = (): Promise<string> => page.evaluate("getComputedStyle(document.documentElement).backgroundColor");
    const light = await ground();
    await page.keyboard.press("t");
    await shown(ground).not.toBe(light);
    const dark = await ground();
    await page.reload();
    await page.waitForSelector("main");
    await shown(() => ground()).toBe(dark);
  });

  it("can be walked with the keyboard, and the focus is seen", async () => {
    const page = await tabs.visit();
    await page.waitForSelector("main");
    await page.keyboard.press("Tab");
    await shown(() => page.evaluate("document.activeElement.textContent")).toContain("Skip to the charts");
    await page.keyboard.press("Enter");
    await shown(() => page.evaluate("document.activeElement.id")).toBe("main");
    await page.keyboard.press("?");
    await shown(() => page.locator("dialog[open]").textContent()).toContain("Filter by workload");
    await page.keyboard.press("Escape");
    await page.keyboard.press("4");
    await queryString(page).toBe("?page=system");
    await page.keyboard.press("Tab");
    await shown(() => page.evaluate("getComputedStyle(document.activeElement).outlineStyle")).toBe("solid");
  });
});
