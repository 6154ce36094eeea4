// SPDX-License-Identifier: Apache-2.0

// Every page has no visual faults in any size and theme, with and without data. Redis, nginx and this machine are real; a
// small simulated machine has containers.
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { Tabs } from "./browser";
import { type Fleet, startFleet } from "./fleet";
import { lookOver } from "./looks";
import { freePort, PATIENCE_SECONDS, Processes, startLoad, startNginx, startRedis, startRequests, startServer, startTeescope, until } from "./processes";
import { LOADED, pause, twoAtATime, views } from "./views";

const processes = new Processes();
const tabs = new Tabs();
const VIEWS = views("nginx", "redis-server");
let fleet: Fleet;
let full: string;
let empty: string;

beforeAll(async () => {
  await tabs.launch();
  fleet = await startFleet({ workloads: 5, containers: 9 });
  startRequests(processes, await startNginx(processes));
  startLoad(processes, await startRedis(processes));
  const fast = ["--interval", "1s", "--analysis.interval", "2s", "--targets", fleet.instance];
  full = (await startTeescope(processes, await freePort(), processes.folder(), fast)).url;
  empty = (await startServer(processes, await freePort(), processes.folder(), ["--targets", "127.0.0.1:1"])).url; // nothing listens there
});

afterEach(() => tabs.close());

afterAll(async () => {
  await tabs.quit();
  fleet.close();
  await processes.stopAll();
});

it.each(["with-data", "without-data"])("looks right on every page, in every size and theme, %s", async (data) => {
  const notes: Record<string, string[]> = {};
  await twoAtATime(VIEWS, async (view) => {
    tabs.url = data === "with-data" ? full : empty;
    const page = await tabs.visit(view.path);
    await page.waitForSelector(data === "with-data" ? view.ready : LOADED);
    await page.setViewportSize({ width: 1280, height: 8000 }); // all panels are visible and query their data
    const answered = (): Promise<unknown> =>
      until(`answers for ${view.page}`, PATIENCE_SECONDS, async () => (await page.locator('[data-panel][data-state="loading"]').count()) === 0 || undefined);
    await answered();
    await pause(page);
    await answered();
    await lookOver(page, `${view.page}-${data}`, notes);
    await page.context().close();
  });
  expect(notes).toEqual({});
});
