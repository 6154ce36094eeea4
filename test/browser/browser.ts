// SPDX-License-Identifier: Apache-2.0

// A headless Chromium, and a page that notes everything a page must not do.
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
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

export function launch(): Promise<Browser> {
  return chromium.launch({ executablePath: process.env["CHROMIUM_BIN"] ?? "/usr/bin/chromium", args: FLAGS });
}

export interface Watched {
  page: Page;
  /** Console errors, violations of the content policy, uncaught exceptions. */
  complaints: string[];
  /** Requests to anywhere but the server under test. */
  strangers: string[];
  close: () => Promise<void>;
}

/** Opens a tab, waits for `ready` with it still empty, and goes to an address. */
export async function openPage(browser: Browser, url: string, options: BrowserContextOptions = {}, ready?: () => Promise<void>): Promise<Watched> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  const complaints: string[] = [];
  const strangers: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== new URL(url).origin) strangers.push(request.url());
  });
  await ready?.();
  await page.goto(url);
  return { page, complaints, strangers, close: () => context.close() };
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

/** Runs axe on what is drawn now; gives serious and critical violations. */
export async function seriousViolations(page: Page): Promise<AxeViolation[]> {
  // The page's policy forbids added scripts; the debugger's evaluate is not one.
  await page.evaluate(axeSource);
  const found = await page.evaluate<AxeViolation[]>(
    `axe.run(document, { resultTypes: ["violations"] }).then((r) => r.violations.map((v) => ({
      id: v.id, impact: v.impact, help: v.help, nodes: v.nodes.map((n) => n.html.slice(0, 200) + " " + n.failureSummary) })))`,
  );
  return found.filter((v) => v.impact === "serious" || v.impact === "critical");
}

/** The chart with data of a panel: drawn, and with at least one series in its legend. */
export const chart = (id: string): string => `[data-panel="${id}"][data-state="ready"] .plot canvas`;
