// SPDX-License-Identifier: Apache-2.0

// Properties of every page: it shows new points, survives a reload, works with Back and with keys alone. Redis, nginx and
// this machine are real; a small simulated machine has containers.
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { chart, queryString, screenshot, shown, Tabs } from "./browser";
import { type Fleet, startFleet } from "./fleet";
import { wrong } from "./looks";
import { freePort, PATIENCE_SECONDS, Processes, startLoad, startNginx, startRedis, startRequests, startTeescope, until } from "./processes";
import { newPoint, LOADED, pause, twoAtATime, type View, views } from "./views";

const processes = new Processes();
const tabs = new Tabs();
const VIEWS = views("nginx", "redis-server");
let fleet: Fleet;
let full: string;

beforeAll(async () => {
  await tabs.launch();
  fleet = await startFleet({ workloads: 5, containers: 9 });
  startRequests(processes, await startNginx(processes));
  startLoad(processes, await startRedis(processes));
  const fast = ["--interval", "1s", "--overhead.budget", "100%", "--analysis.interval", "2s", "--targets", fleet.instance];
  full = (await startTeescope(processes, await freePort(), processes.folder(), fast)).url;
});

afterEach(() => tabs.close());

afterAll(async () => {
  await tabs.quit();
  fleet.close();
  await processes.stopAll();
});

async function open(view: View): Promise<Page> {
  tabs.url = full;
  const page = await tabs.visit(view.path);
  await page.waitForSelector(view.ready);
  return page;
}

it("shows a new point on every page without a reload, and all of it again after one", async () => {
  await twoAtATime(VIEWS, async (view) => {
    const page = await open(view);
    await newPoint(page, view);
    const address = page.url();
    await page.reload();
    await page.waitForSelector(view.ready);
    await shown(() => page.url()).toBe(address);
    await page.context().close();
  });
});

it("goes through all pages by their links, back through them, and forward again", async () => {
  const page = await tabs.visit(`${full}/?range=1m`);
  const drawn = (at: View | undefined): Promise<unknown> => page.waitForSelector(`main[data-page="${at?.page ?? ""}"] ${LOADED}`);
  const [first, ...others] = VIEWS;
  await drawn(first);
  for (const view of others) {
    await page.locator(`nav a[href*="page=${view.page}"]`).click();
    await drawn(view);
    await queryString(page).toContain("range=1m");
    await shown(() => page.locator('nav a[aria-current="page"]').count()).toBe(1);
  }
  for (const view of VIEWS.slice(0, -1).reverse()) {
    await page.goBack();
    await drawn(view);
  }
  await page.goForward();
  await drawn(others[0]);
});

it("shows nginx only, and compares it with Redis per 100 answers", async () => {
  tabs.url = full;
  const page = await tabs.visit("/?page=workload&w=nginx&range=1m");
  await page.waitForSelector(chart("syscalls-by-name"));
  const names = page.locator('[data-panel="syscalls-by-name"] .legend .name');
  await until("the calls of nginx", PATIENCE_SECONDS, async () => {
    const all = await names.allTextContents();
    return (all.includes("writev") && all.includes("recvfrom") && all.includes("epoll_wait")) || undefined;
  });
  await shown(() => page.locator('[data-panel="identity"]').textContent()).toContain("nginx");
  // nginx answers with one writev, Redis with one write: both are 100 per 100 of the divisor.
  await page.goto(`${full}/?page=compare&range=1m&a=nginx&b=redis-server&per=call:writev&perb=call:write`);
  // The median of a side is the text above its quartiles.
  const side = (row: string, at: number): Promise<number> =>
    page.evaluate<number>(`(() => {
      const [, digits, prefix] = /^([\\d.]+)(k?)$/.exec(document.querySelectorAll('[data-row="syscalls-by-name/${row}"] td')[${at}].firstChild.textContent);
      return Number(digits) * (prefix === "k" ? 1000 : 1);
    })()`);
  await until("100 writes on both sides", PATIENCE_SECONDS, async () => ((await side("writev", 2)) === 100 && (await side("write", 3)) === 100) || undefined);
  // nginx reads each request, and once more when a connection ends.
  await until("the reads of nginx", PATIENCE_SECONDS, async () => {
    const reads = await side("recvfrom", 2);
    return (reads > 90 && reads < 210) || undefined;
  });
  await screenshot(page, "compare-nginx-redis");
});

it("says of the machine what its kernel says", async () => {
  tabs.url = full;
  const page = await tabs.visit("/?page=infrastructure&range=1m");
  const value = async (panel: string, name: string): Promise<number> => {
    const entry = page.locator(`[data-panel="${panel}"] .legend button`).filter({ has: page.getByText(name, { exact: true }) });
    const [, digits, prefix = ""] = /([\d.]+) ?([KMGT]?)/.exec((await entry.locator(".value").textContent()) ?? "") ?? [];
    return Number(digits) * 1024 ** " KMGT".indexOf(prefix || " ");
  };
  const total = 1024 * Number(/MemTotal: +(\d+)/.exec(readFileSync("/proc/meminfo", "utf8"))?.[1]);
  const processors = readFileSync("/proc/cpuinfo", "utf8").match(/^processor/gm)?.length;
  for (const panel of ["node-load", "node-memory"]) await page.waitForSelector(chart(panel));
  let memory = 0;
  await until("parts of the memory that make all of it", PATIENCE_SECONDS, async () => {
    memory = 0;
    for (const part of ["used", "cache", "buffers", "free"]) memory += await value("node-memory", part);
    return Math.abs(memory / total - 1) < 0.01 || undefined;
  }).catch((error: unknown) => {
    throw new Error(`${String(error)}: ${memory} of ${total} bytes`);
  });
  // The shown value is a few seconds old. It lies between the minimum and maximum since then.
  const loads: number[] = [];
  await until("the load that the kernel reports", PATIENCE_SECONDS, async () => {
    loads.push(Number(readFileSync("/proc/loadavg", "utf8").split(" ")[0]));
    const shown = await value("node-load", "1 minute");
    return (shown >= 0.98 * Math.min(...loads) && shown <= 1.02 * Math.max(...loads)) || undefined;
  });
  await shown(() => value("node-load", "CPUs")).toBe(processors);
});

it("opens and closes everything by keys, without barriers, narrow and wide", async () => {
  tabs.url = full;
  const notes: Record<string, string[]> = {};
  await twoAtATime([{ width: 360, colorScheme: "dark" }, { width: 1280, colorScheme: "light" }] as const, async ({ width, colorScheme }) => {
    const page = await tabs.visit("/?range=1m", { viewport: { width, height: 900 }, colorScheme });
    await page.waitForSelector(chart("cpu-by-workload"));
    await pause(page);
    const things = [
      ["#filter-button", ".popover-panel"],
      ["#range-button", ".popover-panel"],
      ["#help-button", "dialog[open]"],
      ['[data-panel="cpu-by-workload"] [aria-haspopup="menu"]', '[role="menu"]'],
    ] as const;
    for (const [button, opened] of things) {
      await page.locator(button).focus();
      await page.keyboard.press("Enter");
      await page.locator(opened).waitFor();
      const found = await wrong(page, opened);
      if (found.length > 0) notes[`${opened} of ${button} at ${width}`] = found;
      await screenshot(page, `open-${button.replaceAll(/\W+/g, "-")}-${width}`);
      await page.keyboard.press("Escape");
      await page.locator(opened).waitFor({ state: "detached" }).catch(() => page.locator(opened).waitFor({ state: "hidden" }));
      await shown(() => page.evaluate(`document.activeElement === document.querySelector(${JSON.stringify(button)})`), button).toBe(true);
    }
    await page.goto(`${full}/?page=explore`);
    await page.locator("#query-0").fill("teescope_sysc");
    await page.getByRole("listbox").waitFor();
    const found = await wrong(page);
    if (found.length > 0) notes[`completion at ${width}`] = found;
  });
  expect(notes).toEqual({});
});

it("is walked by Tab in the order in which it is read, with the focus in sight", async () => {
  tabs.url = full;
  const page = await tabs.visit("/?range=1m");
  await page.waitForSelector(chart("cpu-by-workload"));
  await page.keyboard.press("p"); // a live table or finding can vanish with the focus
  await page.waitForSelector("header .live.paused");
  await page.waitForLoadState("networkidle");
  await page.evaluate(`window.order = () => [...document.querySelectorAll("a[href], button, input, select, summary, [tabindex]")]
    .filter((e) => e.tabIndex >= 0 && !e.disabled && e.checkVisibility())`);
  await shown(() => page.evaluate(`order().filter((e) => e.tabIndex > 0).length`)).toBe(0);
  // What follows is judged by the document and not by numbers: panels get their data when they come near the screen.
  await page.evaluate("window.reached = document.body");
  for (let step = 0; step < 25; step++) {
    await page.keyboard.press("Tab");
    const [follows, seen, ring] = await page.evaluate<[boolean, boolean, boolean]>(`(() => {
      const e = document.activeElement, box = e.getBoundingClientRect(), style = getComputedStyle(e);
      const above = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
      const follows = order().includes(e) && (!reached.isConnected || (reached.compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING) > 0);
      window.reached = e;
      return [follows, above !== null && (e.contains(above) || above.contains(e)), style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0];
    })()`);
    expect([follows, seen, ring], `what Tab reaches in step ${step}`).toEqual([true, true, true]);
  }
  await page.keyboard.press("Shift+Tab");
  await shown(() => page.evaluate("(reached.compareDocumentPosition(document.activeElement) & Node.DOCUMENT_POSITION_PRECEDING) > 0")).toBe(true);
});
