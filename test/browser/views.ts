// SPDX-License-Identifier: Apache-2.0

// All pages, each with selectors for its data and its newest point.
import type { Page } from "playwright-core";
import { chart } from "./browser";
import { PATIENCE_SECONDS, until } from "./processes";
import { PAGES, type PageId } from "../../web/src/lib/url";

export interface View {
  page: PageId;
  path: string;
  /** Selects an element that exists once the page shows data. */
  ready: string;
  /** Selects text that changes with a new point; undefined where this machine has none. */
  newest: string | undefined;
}

const panel = (id: string): string => `[data-panel="${id}"]`;
const plot = (id: string): string => `${panel(id)} .plot`;

/** Selects panels that are not loading. */
export const LOADED = '[data-panel]:not([data-state="loading"])';

/** Returns all pages for one workload, and a second one where two are needed. */
export function views(one: string, two: string): View[] {
  const table: Record<PageId, { more?: string; ready: string; newest?: string }> = {
    overview: { ready: chart("cpu-by-workload"), newest: plot("cpu-by-workload") },
    findings: { ready: `${panel("windows")}[data-state="ready"]`, newest: `${panel("all-findings")} .page-note` },
    tee: { ready: LOADED }, // without enclaves the page shows what the machine offers; tee.test.ts has enclaves
    system: { ready: chart("syscalls-by-workload"), newest: plot("syscalls-by-workload") },
    containers: { ready: `${panel("containers")} tbody tr`, newest: plot("container-memory") },
    infrastructure: { ready: chart("node-cpu"), newest: plot("node-cpu") },
    workload: { more: `&w=${one}`, ready: chart("syscalls-by-name"), newest: plot("syscalls-by-name") },
    compare: { more: `&a=${one}&b=${two}`, ready: `${panel("ratios")} tbody tr`, newest: `${panel("ratios")} tbody` },
    explore: { more: "&expr=rate(node_context_switches_total[10s])", ready: chart("result-0"), newest: plot("result-0") },
    status: { ready: `${panel("probes")} tbody tr`, newest: `${panel("targets")} tbody` },
    fleet: { ready: `${panel("Nodes")} tbody tr` },
    profile: { ready: panel("flame") }, // profiles are off; profile.test.ts has some
    dashboards: { ready: `${panel("boards")}[data-state="ready"]` }, // nobody has kept one
  };
  return PAGES.map((page) => {
    const { more = "", ready, newest } = table[page];
    return { page, path: `/?page=${page}&range=1m${more}`, ready, newest };
  });
}

/** Returns the text or label of the newest point of a page. */
export async function newestWords(page: Page, { newest }: View): Promise<string> {
  if (newest === undefined) return "";
  const found = page.locator(newest).first();
  return (await found.getAttribute("aria-label")) ?? (await found.textContent()) ?? "";
}

/** Waits for a new point without any input; returns at once where none can come. */
export async function newPoint(page: Page, view: View): Promise<void> {
  if (view.newest === undefined) return;
  const before = await newestWords(page, view);
  await until(`a new point on ${view.page}`, PATIENCE_SECONDS, async () => (await newestWords(page, view)) !== before || undefined);
}

/** Pauses a live page. It would query all its panels each second, while axe judges what it shows. */
export async function pause(page: Page): Promise<void> {
  await page.locator("header .live").click();
  await page.waitForSelector("header .live.paused");
}

/** Runs two tasks at a time, so that a waiting page leaves the processors to another. */
export async function twoAtATime<T>(all: readonly T[], work: (one: T) => Promise<void>): Promise<void> {
  const rest = [...all];
  const worker = async (): Promise<void> => {
    for (let one = rest.shift(); one !== undefined; one = rest.shift()) await work(one);
  };
  await Promise.all([worker(), worker()]);
}
