// SPDX-License-Identifier: Apache-2.0

// A server that goes away and returns, with a teescope of its own. Failed
// requests are what this test is about, so the console is not asked here.
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { chart, launch, openPage } from "./browser";
import { freePort, Processes, startTeescope } from "./processes";

const processes = new Processes();
let browser: Browser;

beforeAll(async () => {
  browser = await launch();
});

afterAll(async () => {
  await browser.close();
  await processes.stopAll();
});

it("keeps what it drew while the server is gone, says so, and goes on when it is back", async () => {
  const port = await freePort();
  const folder = processes.folder();
  const first = await startTeescope(processes, port, folder);
  const { page } = await openPage(browser, first.url);
  await page.waitForSelector(chart("cpu-by-workload"));
  await first.stop();
  await page.locator(".banner", { hasText: "No answer from teescope" }).waitFor();
  expect(await page.locator(chart("cpu-by-workload")).count()).toBe(1);
  await startTeescope(processes, port, folder);
  await page.locator(".banner").waitFor({ state: "detached" });
});
