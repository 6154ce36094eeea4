// SPDX-License-Identifier: Apache-2.0

// A headless Chromium whose tabs record errors and requests to other servers.
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { expect } from "vitest";
import { PATIENCE_SECONDS, resultsFolder } from "./processes";

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

/** The answer of a server that has more to do than it can, or whose agent does not answer in time, as on a busy machine. The page asks again. */
const OVERLOADED = /the server responded with a status of 50[23] .*\/api\//;

interface Tab {
  page: Page;
  /** Console errors and warnings, violations of the content policy, uncaught exceptions. */
  complaints: string[];
  /** Requests to other servers than the one under test. */
  strangers: string[];
}

/** A browser and its tabs. After each test no tab may have logged an error or queried another server. */
export class Tabs {
  /** Base URL of the server under test. */
  url = "";
  private browser: Browser | undefined;
  private open: Tab[] = [];

  /** `expected` matches errors that the tests cause on purpose. */
  constructor(private readonly expected?: RegExp) {}

  async launch(): Promise<void> {
    this.browser = await chromium.launch({ executablePath, args: FLAGS, timeout: PATIENCE_SECONDS * 1000 });
  }

  /** Opens an empty tab, waits for `ready`, and goes to a path of the server or to any address. */
  async visit(path = "/", options: BrowserContextOptions = {}, ready?: () => Promise<void>): Promise<Page> {
    if (!this.browser) throw new Error("opening a tab: the browser has not been launched");
    const context = await this.browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_SECONDS * 1000);
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

  /** Fails if a tab has logged an error or queried another server since the last call. */
  judge(): void {
    const complaints = this.open.flatMap((tab) => tab.complaints.splice(0));
    const strangers = this.open.flatMap((tab) => tab.strangers.splice(0));
    expect(complaints.filter((text) => !OVERLOADED.test(text) && this.expected?.test(text) !== true)).toEqual([]);
    expect(strangers).toEqual([]);
  }

  /** Closes and judges all tabs. */
  async close(): Promise<void> {
    for (const { page } of this.open) {
      if (!page.isClosed()) await page.unrouteAll({ behavior: "ignoreErrors" }); // a request may be on its way
      await page.context().close();
    }
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

/** Returns the decoded query string of the page's address. */
export const search = (page: Page): string => decodeURIComponent(new URL(page.url()).search.replaceAll("+", " "));

/** Polls `expect`, because a page follows an input with a delay. */
export const shown = <T>(read: () => T, message?: string) =>
  expect.poll(read, { timeout: PATIENCE_SECONDS * 1000, interval: 50, ...(message !== undefined && { message }) });

/** Polls `expect` of the query string, which changes shortly after the input. */
export const queryString = (page: Page) => shown(() => search(page));

/**
 * Waits until an expression is true in the page. The debugger evaluates it each time. Playwright's `waitForFunction`
 * evaluates it in the page, which the content policy forbids unless it is true at once.
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

/** A panel whose answer is outdated is drawn pale, until the new one arrives. One that is not on the screen does not query it. */
const PALE_IS_AWAY = `[...document.querySelectorAll('[data-stale][data-state="ready"]')].every((e) => {
  const { top, bottom } = e.getBoundingClientRect();
  return bottom <= 0 || top >= innerHeight;
})`;

/** Runs axe on the page or on a part of it, with all or some rules. Returns serious and critical violations. */
export async function seriousViolations(page: Page, within?: string, rules?: readonly string[]): Promise<AxeViolation[]> {
  await holds(page, PALE_IS_AWAY);
  // The page's policy forbids added scripts. It does not restrict the debugger.
  if (await page.evaluate("window.axe === undefined")) await page.evaluate(axeSource);
  const what = within === undefined ? "document" : JSON.stringify(within);
  const how = JSON.stringify({ resultTypes: ["violations"], ...(rules && { runOnly: rules }) });
  const found = await page.evaluate<AxeViolation[]>(
    `axe.run(${what}, ${how}).then((r) => r.violations.map((v) => ({
      id: v.id, impact: v.impact, help: v.help, nodes: v.nodes.map((n) => n.html.slice(0, 200) + " " + n.failureSummary) })))`,
  );
  return found.filter((v) => v.impact === "serious" || v.impact === "critical");
}

/** Selects the chart of a panel that is drawn and has data. */
export const chart = (id: string): string => `[data-panel="${id}"][data-state="ready"] .plot canvas`;
