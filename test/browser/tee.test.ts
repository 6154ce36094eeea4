// SPDX-License-Identifier: Apache-2.0

// The TEE page on enclaves: `teescope demo sgx` boots the virtual SGX machine with two enclaves and teescope.
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { fillTemplate } from "../../web/src/lib/promql";
import { TEE, TEE_TABLES } from "../../web/src/panels/dashboards/tee";
import { expressions } from "../../web/src/panels/panel-queries";
import type { PanelDef } from "../../web/src/panels/types";
import { screenshot, seriousViolations, shown, Tabs } from "./browser";
import { START_MILLISECONDS, startDemo } from "./demos";
import { Processes, type Started, until } from "./processes";

const DATA_SECONDS = 1800;
/** Panels that must be empty: no program in the machine is Gramine's. */
const EMPTY = ["tee-signals"];
/**
 * Metrics that the machine may lack: those of drivers outside the kernel's tree, the variance of exits where each is counted, and estimates.
 */
const MAY_LACK = ["sgx_epc_watermark_bytes", "sgx_epc_pages_marked_old_total", "sgx_epc_pages_reclaimed_total", "teescope_enclave_aex_variance_total",
  "teescope_enclave_exits_estimated_total"];
/**
 * Panels of rare events: a thread that evicts pages itself, an enclave that starts between two scrapes. Exits are estimated until a new
 * program is probed, which takes long on a busy host.
 */
const SELDOM = ["tee-reclaim-heat", "tee-enclave-start", "tee-estimated-exits"];

const processes = new Processes();
const tabs = new Tabs();
let demo: Started;

beforeAll(async () => {
  await tabs.launch();
  demo = await startDemo(processes, tabs, "sgx");
}, START_MILLISECONDS);

afterEach(() => tabs.close());

afterAll(async () => {
  await tabs.quit();
  await processes.stopAll();
});

async function count(expr: string): Promise<number> {
  const query = fillTemplate(expr, { workloads: [], step: 15, scrapeInterval: 5 });
  const response = await fetch(`${tabs.url}/api/v1/query?${new URLSearchParams({ query }).toString()}`);
  const answer = (await response.json()) as { status: string; error?: string; data: { result: unknown[] } };
  if (answer.status !== "success") throw new Error(`${query}: ${answer.error ?? response.status}`);
  return answer.data.result.length;
}

it("has series for every query, and shows every panel", async () => {
  const panels: PanelDef[] = [...TEE_TABLES, ...TEE.flatMap((section) => section.panels)];
  const asked = panels.filter((def) => !EMPTY.includes(def.id)).flatMap((def) => expressions(def).map((expr) => `${def.id}: ${expr}`))
    .filter((question) => !MAY_LACK.some((name) => question.includes(name)));
  // Each query has series at some time: rates of a short window are without any while a busy host delays the scrapes.
  const missing = new Set(asked);
  await until("series for every query", DATA_SECONDS, async () => {
    for (const question of missing) if ((await count(question.replace(/^[\w-]+: /, ""))) > 0) missing.delete(question);
    return missing.size === 0 || undefined;
  }).catch((error: unknown) => {
    throw new Error(`${String(error)}; without series:\n${[...missing].join("\n")}\n${demo.output}`);
  });

  const page = await tabs.visit("/?page=tee", { viewport: { width: 1280, height: 3200 } });
  for (const def of panels) {
    const panel = page.locator(`[data-panel="${def.id}"]`);
    await panel.scrollIntoViewIfNeeded();
    const states = SELDOM.includes(def.id) ? ["ready", "empty"] : EMPTY.includes(def.id) ? ["empty"] : ["ready"];
    await page.waitForSelector(states.map((state) => `[data-panel="${def.id}"][data-state="${state}"]`).join(", "));
  }
  await shown(() => page.locator('[data-panel="tee-enclave-table"] tbody').textContent()).toMatch(/paging/);
  expect(await seriousViolations(page)).toEqual([]);
  await screenshot(page, "tee-enclaves");
});
