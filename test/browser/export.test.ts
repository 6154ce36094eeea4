// SPDX-License-Identifier: Apache-2.0

// Exports of a panel: picture, CSV, Grafana panel, query.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Download, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { chart, shown, Tabs } from "./browser";
import { pause } from "./views";
import { freePort, Processes, resultsFolder, startTeescope } from "./processes";

const processes = new Processes();
const tabs = new Tabs();
let page: Page;

beforeAll(async () => {
  await tabs.launch();
  tabs.url = (await startTeescope(processes, await freePort(), processes.folder())).url;
  page = await tabs.visit("/?page=system", { permissions: ["clipboard-read", "clipboard-write"] });
  await page.waitForSelector(chart("syscalls-by-workload"));
  await pause(page); // a live legend grows between an export and the look at its panel
  await page.waitForSelector(`${panel}[data-state="ready"]:not([data-stale])`);
});

afterEach(() => {
  tabs.judge();
});

afterAll(async () => {
  await tabs.quit();
  await processes.stopAll();
});

const panel = '[data-panel="syscalls-by-workload"]';

/** Opens the menu by keyboard and chooses the item with these words. */
async function choose(words: string): Promise<void> {
  await page.locator(`${panel} [aria-haspopup="menu"]`).focus();
  await page.keyboard.press("Enter");
  await page.locator(`${panel} [role="menu"]`).waitFor();
  for (let i = 0; i < 6; i++) {
    const focused = await page.evaluate<string>("document.activeElement.textContent");
    if (focused.includes(words)) break;
    await page.keyboard.press("ArrowDown");
  }
  await page.keyboard.press("Enter");
}

async function saved(words: string): Promise<[Download, Buffer]> {
  const [download] = await Promise.all([page.waitForEvent("download"), choose(words)]);
  return [download, await readFile(await download.path())];
}

it("saves a picture that has the title, the lines and the legend", async () => {
  const [download, data] = await saved("Picture");
  expect(download.suggestedFilename()).toBe("teescope-syscalls-by-workload.png");
  await download.saveAs(join(resultsFolder, "export-panel.png"));
  expect(data.subarray(1, 4).toString()).toBe("PNG");
  const box = await page.locator(panel).boundingBox();
  const [width, height] = [data.readUInt32BE(16), data.readUInt32BE(20)];
  expect(width).toBeGreaterThanOrEqual(2 * (box?.width ?? Infinity));
  expect(height).toBeGreaterThanOrEqual(2 * (box?.height ?? Infinity));
  // A line, its swatch and text in several colours. An empty picture has two or three.
  const colours = await page.evaluate<number>(`(async () => {
    const image = new Image();
    image.src = "data:image/png;base64,${data.toString("base64")}";
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = image.width; canvas.height = image.height;
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const seen = new Set(new Uint32Array(context.getImageData(0, 0, image.width, image.height).data.buffer));
    return seen.size;
  })()`);
  expect(colours).toBeGreaterThan(20);
});

it("saves figures with times in UTC and a column a series", async () => {
  const [download, data] = await saved("Figures");
  expect(download.suggestedFilename()).toBe("teescope-syscalls-by-workload.csv");
  const [head, first] = data.toString().split("\r\n");
  expect(head).toMatch(/^time,.* \(per second\)/);
  expect(first).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z,/);
  expect(first?.split(",").length).toBe(head?.split(",").length);
});

it("saves a panel of Grafana", async () => {
  const [, data] = await saved("Grafana");
  const read = JSON.parse(data.toString()) as { type: string; title: string; targets: { expr: string }[] };
  expect(read.type).toBe("timeseries");
  expect(read.title).toBe(await page.locator(`${panel} h3`).textContent());
  expect(read.targets[0]?.expr).toContain("teescope_syscalls_total");
});

it("copies the query as it was asked", async () => {
  await choose("Copy");
  await page.locator(`${panel} [role="status"]`, { hasText: "PromQL copied" }).waitFor();
  const text = await page.evaluate<string>("navigator.clipboard.readText()");
  expect(text).toMatch(/rate\(teescope_syscalls_total\{workload!="idle"\}\[\d+s\]\)/);
});

it("closes on Escape and gives the focus back", async () => {
  const button = page.locator(`${panel} [aria-haspopup="menu"]`);
  await button.focus();
  await page.keyboard.press("Enter");
  await page.locator(`${panel} [role="menu"]`).waitFor();
  await page.keyboard.press("Escape");
  await shown(() => button.getAttribute("aria-expanded")).toBe("false");
  await shown(() => page.evaluate("document.activeElement.getAttribute('aria-haspopup')")).toBe("menu");
});
