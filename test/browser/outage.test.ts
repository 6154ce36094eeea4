// SPDX-License-Identifier: Apache-2.0

// A server that goes away and returns, with a teescope of its own. Failed
// requests are what this test is about: the console tells of them.
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { chart, Tabs } from "./browser";
import { freePort, Processes, startTeescope } from "./processes";

const processes = new Processes();
const tabs = new Tabs(/Failed to load resource: net::ERR_/);

beforeAll(async () => {
  await tabs.launch();
});

afterEach(() => tabs.close());

afterAll(async () => {
  await tabs.quit();
  await processes.stopAll();
});

it("keeps what it drew while the server is gone, says so, and goes on when it is back", async () => {
  const port = await freePort();
  const folder = processes.folder();
  const first = await startTeescope(processes, port, folder);
  tabs.url = first.url;
  const page = await tabs.visit();
  await page.waitForSelector(chart("cpu-by-workload"));
  await first.stop();
  await page.locator(".banner", { hasText: "No answer from teescope" }).waitFor();
  expect(await page.locator(chart("cpu-by-workload")).count()).toBe(1);
  await startTeescope(processes, port, folder);
  await page.locator(".banner").waitFor({ state: "detached" });
});
