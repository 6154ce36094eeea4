// SPDX-License-Identifier: Apache-2.0

// A headless Chromium, and a page that notes everything a page must not do.
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { expect } from "vitest";
import { resultsFolder } from "./processes";

const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

const executablePath = process.env["CHROMIUM_BIN"] ?? "/usr/bin/chromium";

interface Tab {
  page: Page;
  /** Console errors and warnings, violations of the content policy, uncaught exceptions. */
  complaints: string[];
  /** Requests to anywhere but the server under test. */
  strangers: string[];
}

/** One browser and its tabs, which are judged after each test: none may complain, or ask a server other than its own. */
export class Tabs {
  /** The server under test, which paths are of. */
  url = "";
  private browser: Browser | undefined;
  private open: Tab[] = [];

  /** `expected` are the complaints that the tests provoke. */
  constructor(private readonly expected?: RegExp) {}

  async launch(): Promise<void> {
    this.browser = await chromium.launch({ executablePath, args: FLAGS });
  }

  /** Opens a tab, waits for `ready` with it still empty, and goes to a path of the server or to any address. */
  async visit(path = "/", options: BrowserContextOptions = {}, ready?: () => Promise<void>): Promise<Page> {
    if (!this.browser) throw new Error("opening a tab: the browser has not been launched");
    const context = await this.browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(15_000);
    const tab: Tab = { page, complaints: [], strangers: [] };
    this.open.push(tab);
    await ready?.();
    const url = /^(\w+:\/\/|about:)/.test(path) ? path : this.url + path;
    const own = [this.url || url, url].map((address) => new URL(address).origin);
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") tab.complaints.push(`${message.text()} ${message.location().url}`);
    });
    page.on("pageerror", (error) => tab.complaints.push(error.message));
    page.on("request", (request) => {
      if (!own.includes(new URL(request.url()).origin)) tab.strangers.push(request.url());
    });
    await page.goto(url);
    return page;
  }

  /** Fails when a tab has done what no page may since it was last asked. */
  judge(): void {
    const complaints = this.open.flatMap((tab) => tab.complaints.splice(0));
    const strangers = this.open.flatMap((tab) => tab.strangers.splice(0));
    expect(complaints.filter((text) => this.expected?.test(text) !== true)).toEqual([]);
    expect(strangers).toEqual([]);
  }

  /** Closes all tabs, and judges them. */
  async close(): Promise<void> {
    for (const { page } of this.open) await page.context().close();
    try {
      this.judge();
    } finally {
      this.open = [];
    }
  }

  async quit(): Promise<void> {
    await this.browser?.close();
  }
}

/** The query string of the page's address as a person would write it, as it is now. */
export const search = (page: Page): string => decodeURIComponent(new URL(page.url()).search.replaceAll("+", " "));

/** `expect` of something that is read again until it is so, or 15 s have passed: a page follows an input a moment later. */
export const shown = <T>(read: () => T, message?: string) =>
  expect.poll(read, { timeout: 15_000, interval: 50, ...(message !== undefined && { message }) });

/** `expect` of the query string of the page's address, which changes a moment after the input. */
export const queryString = (page: Page) => shown(() => search(page));

/**
 * Waits until an expression is true in the page. The debugger evaluates it each time. Playwright's `waitForFunction` lets the
 * page evaluate it, which the content policy forbids unless it is true at once.
 */
export async function holds(page: Page, expression: string): Promise<void> {
  await shown(() => page.evaluate<unknown>(expression), expression).toBe(true);
}

export async function screenshot(page: Page, name: string): Promise<void> {
  mkdirSync(resultsFolder, { recursive: true });
  await page.screenshot({ path: join(resultsFolder, `${name}.png`) });
}

interface AxeViolation {
  id: string;
  impact: string;
  help: string;
  nodes: string[];
}

const axeSource = readFileSync(
  createRequire(new URL("../../web/package.json", import.meta.url)).resolve("axe-core/axe.min.js"),
  "utf8",
);

/** Runs axe on what is drawn now, or on a part of it, with all rules or some; gives serious and critical violations. */
export async function seriousViolations(page: Page, within?: string, rules?: readonly string[]): Promise<AxeViolation[]> {
  // The page's policy forbids added scripts; the debugger's evaluate is not one.
  if (await page.evaluate("window.axe === undefined")) await page.evaluate(axeSource);
  const what = within === undefined ? "document" : JSON.stringify(within);
  const how = JSON.stringify({ resultTypes: ["violations"], ...(rules && { runOnly: rules }) });
  const found = await page.evaluate<AxeViolation[]>(
    `axe.run(${what}, ${how}).then((r) => r.violations.map((v) => ({
      id: v.id, impact: v.impact, help: v.help, nodes: v.nodes.map((n) => n.html.slice(0, 200) + " " + n.failureSummary) })))`,
  );
  return found.filter((v) => v.impact === "serious" || v.impact === "critical");
}

/** The chart with data of a panel: drawn, and with at least one series in its legend. */
export const chart = (id: string): string => `[data-panel="${id}"][data-state="ready"] .plot canvas`;
