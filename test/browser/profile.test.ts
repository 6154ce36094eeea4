// SPDX-License-Identifier: Apache-2.0

// The page Profile: a real Redis whose threads lead to their code, and a profile of 100,000 frames. The latter is judged by what a
// picture takes, which does not depend on the machine, and writes how long pictures took.
import { execFile } from "node:child_process";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { screenshot, seriousViolations, shown, Tabs } from "./browser";
import { freePort, PATIENCE_SECONDS, Processes, startLoad, startRedis, startTeescope, teescopeBinary, until } from "./processes";

const REDIS = "redis-server";
/** Nodes below the root at each depth: 50, 50 × 40, 50 × 40 × 50. */
const FAN = [50, 40, 50];
const NODES = 50 + 2000 + 100_000;
const processes = new Processes();
const tabs = new Tabs();
/** The time of the large profile, Unix seconds. It is outside the last hour. */
const large = Math.floor(Date.now() / 1000) - 3 * 3600;

/** A profile of 100,000 functions, each with another value, as folded stacks. */
function folded(): string {
  const [outer = 0, middle = 0, inner = 0] = FAN;
  const lines: string[] = [];
  for (let a = 0; a < outer; a++) {
    for (let b = 0; b < middle; b++) {
      for (let c = 0; c < inner; c++) lines.push(`serve_${a};handle_${a}_${b};leaf_${a}_${b}_${c} ${1 + ((a * 7919 + b * 104729 + c * 31) % 97)}`);
    }
  }
  return `${lines.join("\n")}\n`;
}

beforeAll(async () => {
  await tabs.launch();
  const data = processes.folder();
  const source = join(processes.folder(), "large.folded");
  writeFileSync(source, folded());
  mkdirSync(join(data, "profiles"));
  await promisify(execFile)(teescopeBinary, ["profile", "convert", source, join(data, "profiles", `${large * 1000}-${(large + 60) * 1000}.pb.gz`)]);
  startLoad(processes, await startRedis(processes));
  // As the agent keeps them after a client has asked for the event.
  await Promise.all(
    ["syscalls", "off-cpu"].map(async (event) => {
      const [began, file] = [Date.now(), join(processes.folder(), "event.pb.gz")];
      await promisify(execFile)(teescopeBinary, ["profile", "record", "--event", event, "--watch", `comm=${REDIS}`, "--for", "3s", "-o", file]);
      renameSync(file, join(data, "profiles", `${began}-${Date.now()}-${event}.pb.gz`));
    }),
  );
  const { url } = await startTeescope(processes, await freePort(), data, ["--interval", "1s", "--profiles.enabled"]);
  tabs.url = url;
});

afterAll(async () => {
  await tabs.quit();
  await processes.stopAll();
});

afterEach(() => tabs.close());

const flame = (page: Page) => page.locator('[data-panel="flame"] .flame canvas').first();
const figure = async (page: Page, name: string): Promise<number> => Number(await flame(page).getAttribute(`data-${name}`));

describe("a profile of 100,000 frames", () => {
  const path = `/?page=profile&from=${large - 60}&to=${large + 120}`;

  it("is drawn with work that is bounded by the size of the picture", async () => {
    const page = await tabs.visit(path);
    await shown(() => figure(page, "rectangles")).toBeGreaterThan(0);
    const tree = (await (await fetch(`${tabs.url}/api/profiles/tree?start=${large - 60}&end=${large + 120}`)).json()) as { frames: number[]; total: number };
    expect(tree.frames).toHaveLength(NODES);
    const box = await flame(page).boundingBox();
    const limit = Math.ceil(box?.width ?? 0) * 4; // a rectangle for each pixel of each row at most; there are four rows
    const judge = async (what: string): Promise<void> => {
      const [rectangles, steps] = [await figure(page, "rectangles"), await figure(page, "steps")];
      process.stdout.write(`100,000 frames, ${what}: ${rectangles} rectangles in ${steps} steps (at most ${limit})\n`);
      expect(rectangles, what).toBeLessThanOrEqual(limit);
      expect(steps, what).toBeLessThanOrEqual(limit);
    };
    const press = async (key: string): Promise<void> => {
      const before = await figure(page, "pictures");
      await page.keyboard.press(key);
      await shown(() => figure(page, "pictures"), `a picture after ${key}`).toBeGreaterThan(before);
    };
    await judge("whole");
    await flame(page).focus();
    for (const key of ["ArrowDown", "Enter", "ArrowDown", "+", "+", "ArrowRight", "ArrowRight", "Enter", "Escape"]) {
      await press(key);
      await judge(key);
    }
    await page.locator('[data-panel="flame"] input[type="search"]').fill("leaf_7_");
    await judge("search");
    // The share that the search finds is that of serve_7, which the profile says.
    const wanted = folded().split("\n").filter((line) => line.includes("leaf_7_")).reduce((sum, line) => sum + Number(line.split(" ")[1]), 0);
    const share = page.locator('[data-panel="flame"] .chart-bar [role="status"]');
    await shown(async () => Math.abs(Number((await share.textContent())?.replace(/ % .*/, "")) - (100 * wanted) / tree.total)).toBeLessThan(0.1);
    await screenshot(page, "profile-large");
  });

  it("says how long its pictures take", async () => {
    const page = await tabs.visit(path);
    await shown(() => figure(page, "rectangles")).toBeGreaterThan(0);
    const took = await page.evaluate<{ pictures: number; median: number; late: number; longest: number }>(`(async () => {
      const canvas = document.querySelector('[data-panel="flame"] .flame canvas');
      const before = Number(canvas.dataset.pictures);
      const { left, top, width } = canvas.getBoundingClientRect();
      const times = [];
      let last = performance.now();
      for (let i = 0; i < 120; i++) {
        canvas.dispatchEvent(new WheelEvent("wheel", { ctrlKey: true, bubbles: true, cancelable: true, deltaY: i % 60 < 30 ? -100 : 100, clientX: left + width * (0.2 + 0.005 * i), clientY: top + 40 }));
        await new Promise(requestAnimationFrame);
        const now = performance.now();
        times.push(now - last);
        last = now;
      }
      times.sort((a, b) => a - b);
      return { pictures: Number(canvas.dataset.pictures) - before, median: times[60], late: times.filter((t) => t > 25).length, longest: times.at(-1) };
    })()`);
    process.stdout.write(`100,000 frames, zooming: ${took.pictures} pictures for 120 frames, median ${took.median.toFixed(1)} ms, ${took.late} above 25 ms, longest ${took.longest.toFixed(1)} ms\n`);
    expect(took.pictures).toBeGreaterThan(0);
  });
});

interface Times {
  threads: { tid: string; process: string; pieces: [number, number, number][] }[];
}

describe("a real program", () => {
  it("leads from a thread and a span of time to its code, by keyboard and in both themes", async () => {
    const ask = async (): Promise<Times | undefined> => {
      const answer = await fetch(`${tabs.url}/api/profiles/threads?workload=${REDIS}`);
      const times = (await answer.json()) as Times;
      return answer.ok && times.threads.length > 0 ? times : undefined;
    };
    await until("a profile of Redis with several functions", PATIENCE_SECONDS, async () => {
      const answer = await fetch(`${tabs.url}/api/profiles/tree?workload=${REDIS}`);
      const tree = (await answer.json()) as { frames: number[] };
      return (answer.ok && tree.frames.length > 20 && (await ask()) !== undefined) || undefined;
    });
    const page = await tabs.visit(`/?page=profile&w=${REDIS}&range=1h&live=0`);
    await page.locator('[data-panel="threads"][data-state="ready"] canvas').waitFor();
    await shown(() => figure(page, "rectangles")).toBeGreaterThan(0);
    const names = await page.locator(".functions tbody th").allTextContents();
    expect(names.length).toBeGreaterThan(3);
    for (const theme of ["light", "dark"]) {
      await page.evaluate(`document.documentElement.dataset.theme = ${JSON.stringify(theme)}; document.dispatchEvent(new Event("teescope-theme-changed"))`);
      expect(await seriousViolations(page), theme).toEqual([]);
      await screenshot(page, `profile-${theme}`);
    }
    const threads = page.locator('[data-panel="threads"] canvas');
    await threads.focus();
    await page.keyboard.press("Enter"); // the first thread, which has the most time
    await shown(() => page.locator("#flame-head").textContent()).toMatch(/^Flame graph of redis-server \d+/);
    const head = await page.locator("#flame-head").textContent();
    const tid = /redis-server (\d+)/.exec(head ?? "")?.[1] ?? "";
    const note = page.locator('[data-panel="flame"] > .page-note').last();
    await shown(() => note.textContent()).toContain(`tid ${tid}`);
    // The graph of a thread has the time of its row. Another profile may be stored between the two requests.
    await shown(async () => {
      const row = (await ask())?.threads.find((t) => t.tid === tid);
      const seconds = (row?.pieces ?? []).reduce((sum, [, , ns]) => sum + ns, 0) / 1e9;
      const own = (await (await fetch(`${tabs.url}/api/profiles/tree?workload=${REDIS}&label=tid:${tid}`)).json()) as { total: number };
      return Math.abs(own.total / 1e9 - seconds);
    }).toBeLessThan(0.05);
    await threads.focus();
    for (const key of ["ArrowRight", "Shift+ArrowRight", "Shift+ArrowRight", "Enter"]) await page.keyboard.press(key);
    await shown(() => page.locator("#flame-head").textContent()).not.toBe(head);
    await threads.focus();
    await page.keyboard.press("Escape");
    await shown(() => page.locator("#flame-head").textContent()).toBe("Flame graph");
    await page.locator(".functions tbody .link-button").first().click();
    await page.locator('[data-panel="sandwich"] canvas').first().waitFor();
    expect(await seriousViolations(page)).toEqual([]);
    await screenshot(page, "profile-sandwich");
  });

  it("has its system calls and waits, by number and by time", async () => {
    const page = await tabs.visit(`/?page=profile&w=${REDIS}&range=1h&live=0`);
    const events = page.locator('[data-panel="threads"] [aria-label="Events"] .chip');
    await shown(() => events.allTextContents()).toEqual(["CPU time", "System calls", "Waits"]);
    const note = page.locator('[data-panel="flame"] > .page-note').last();
    const total = async (query: string): Promise<number> =>
      ((await (await fetch(`${tabs.url}/api/profiles/tree?workload=${REDIS}&event=syscalls${query}`)).json()) as { total: number }).total;
    await events.filter({ hasText: "System calls" }).click();
    await shown(() => note.textContent()).toMatch(/ of calls, n=/);
    await shown(() => page.evaluate("location.search")).toContain("event=syscalls");
    // The innermost frames are calls, and so are the states of threads: Redis reads requests and writes answers.
    await shown(async () => (await page.locator(".threads .legend li").allTextContents()).filter((t) => ["read", "write", "epoll_wait"].includes(t)).length).toBe(3);
    await page.locator(".threads canvas").focus();
    await shown(() => page.locator(".threads .at").textContent()).toContain("redis-server");
    for (const theme of ["light", "dark"]) {
      await page.evaluate(`document.documentElement.dataset.theme = ${JSON.stringify(theme)}; document.dispatchEvent(new Event("teescope-theme-changed"))`);
      expect(await seriousViolations(page), theme).toEqual([]);
      await screenshot(page, `profile-events-${theme}`);
    }
    await page.locator('[data-panel="flame"] .chip', { hasText: "By time" }).click();
    await shown(() => note.textContent()).toMatch(/s of wall, n=/);
    await shown(() => page.evaluate("location.search")).toContain("value=wall");
    await shown(async () => (await total("")) - (await total("&value=calls"))).toBe(0); // another profile may be stored between two requests
    expect(await total("&value=wall")).not.toBe(await total(""));
    await page.goBack();
    await shown(() => note.textContent()).toMatch(/ of calls, n=/);
    await events.filter({ hasText: "Waits" }).click();
    await shown(() => note.textContent()).toMatch(/ of off-cpu, n=/);
    await shown(async () => (await page.locator(".threads .legend li").allTextContents()).every((t) => t.startsWith("waits: "))).toBe(true);
    await events.filter({ hasText: "CPU time" }).click();
    await shown(() => page.evaluate("location.search")).not.toContain("event=");
  });

  it("shows recordings of its CPU time and of its waits together", async () => {
    const folder = processes.folder();
    const record = (event: string[], name: string): Promise<unknown> =>
      promisify(execFile)(teescopeBinary, ["profile", "record", ...event, "--watch", `comm=${REDIS}`, "--for", "5s", "-o", join(folder, name)]);
    await Promise.all([record(["--frequency", "499"], "cpu.pb.gz"), record(["--event", "off-cpu"], "waits.pb.gz")]);
    const page = await tabs.visit("/?page=profile&live=0");
    await page.locator('input[type="file"]').setInputFiles([join(folder, "cpu.pb.gz"), join(folder, "waits.pb.gz")]);
    await shown(() => page.locator("#threads-head").textContent()).toBe("Threads of cpu.pb.gz and waits.pb.gz");
    // Redis waits for requests in epoll_wait, and answers them with system calls.
    const states = page.locator(".threads .legend li");
    await shown(async () => (await states.allTextContents()).filter((t) => ["system call", "waits: events (poll)"].includes(t)).length).toBe(2);
    const note = page.locator('[data-panel="flame"] > .page-note').last();
    await shown(() => note.textContent()).toMatch(/^cpu\.pb\.gz: .* of cpu/);
    await page.locator('[data-panel="flame"] .chip', { hasText: "waits.pb.gz" }).click();
    await shown(() => note.textContent()).toMatch(/^waits\.pb\.gz: .* of off-cpu/);
    await page.locator('[data-panel="threads"] canvas').focus();
    await page.keyboard.press("Enter");
    await shown(() => page.locator("#flame-head").textContent()).toMatch(/^Flame graph of redis-server \d+/);
    for (const theme of ["light", "dark"]) {
      await page.evaluate(`document.documentElement.dataset.theme = ${JSON.stringify(theme)}; document.dispatchEvent(new Event("teescope-theme-changed"))`);
      expect(await seriousViolations(page), theme).toEqual([]);
      await screenshot(page, `profile-recorded-${theme}`);
    }
  });
});
