// SPDX-License-Identifier: Apache-2.0

// A server that stops and returns, under every page. It has a teescope of its own. The console reports the failed
// requests, and those that the server answers with 502 or 503 while it or its agent stops or starts.
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { Tabs } from "./browser";
import { type Fleet, fleetId, startFleet } from "./fleet";
import { freePort, Processes, sleep, startTeescope } from "./processes";
import { newPoint, twoAtATime, type View, views } from "./views";

const processes = new Processes();
const tabs = new Tabs(/Failed to load resource: (net::ERR_|the server responded with a status of 50[23])/);
let fleet: Fleet;

/** Pages that must keep their data. They show this machine, because the simulated one is late on a busy machine. */
const KEEPS_DATA = ["overview", "system", "infrastructure", "explore", "status"];

beforeAll(async () => {
  await tabs.launch();
  fleet = await startFleet({ workloads: 3, containers: 3 });
});

afterEach(() => tabs.close());

afterAll(async () => {
  await tabs.quit();
  fleet.close();
  await processes.stopAll();
});

it("keeps every page while the server is down, says so, sends no more requests than before, and continues when it is back", async () => {
  const port = await freePort();
  const folder = processes.folder();
  const start = () => startTeescope(processes, port, folder, ["--interval", "1s", "--analysis.interval", "2s", "--targets", fleet.instance]);
  const first = await start();
  tabs.url = first.url;
  const open: { view: View; page: Page; asked: string[] }[] = [];
  await twoAtATime(views(fleetId(0), fleetId(1)), async (view) => {
    const page = await tabs.visit(view.path);
    await page.waitForSelector(view.ready);
    const asked: string[] = [];
    page.on("request", (request) => {
      const { pathname, searchParams } = new URL(request.url());
      asked.push(`${pathname} ${searchParams.get("query") ?? ""} ${searchParams.getAll("match[]").join()}`);
    });
    open.push({ view, page, asked });
  });

  // SIGKILL, because a server that stops normally first marks its series as ended. A table queried just then is
  // empty. A stopped server gives no more answers, so that what the pages show then is what they must keep: on a busy
  // machine a scrape can fail, and a table be empty.
  first.child.kill("SIGSTOP");
  await sleep(1000);
  for (const { page } of open) await page.evaluate("new Promise((done) => requestIdleCallback(done))"); // what has arrived is drawn
  const shows: boolean[] = [];
  for (const { view, page } of open) shows.push((await page.locator(view.ready).count()) > 0);
  expect(shows).toContain(true);
  first.child.kill("SIGKILL");
  for (const { page } of open) await page.locator(".banner", { hasText: "No answer from teescope" }).waitFor();
  const began = Date.now();
  for (const { asked } of open) asked.length = 0;
  await sleep(4000);
  const seconds = (Date.now() - began) / 1000;
  const questions = open.map(({ asked }) => [...asked]); // a copy, because the pages continue querying
  for (const [i, { view, page }] of open.entries()) {
    if (KEEPS_DATA.includes(view.page) && shows[i]) expect(await page.locator(view.ready).count(), view.page).toBeGreaterThan(0);
    expect(await page.locator("header .live").textContent(), view.page).toBe("No answer");
    // Each page may repeat its requests every second, and some of them for two panels. Many more would overload a
    // server.
    const asked = questions[i] ?? [];
    const times = Math.max(0, ...asked.map((question) => asked.filter((other) => other === question).length));
    expect(times, `${view.page}: ${asked.join("\n")}`).toBeLessThanOrEqual(3 * (seconds + 2));
  }

  await start();
  await twoAtATime(open, async ({ view, page }) => {
    await page.locator(".banner").waitFor({ state: "detached" });
    await newPoint(page, view);
  });
});
