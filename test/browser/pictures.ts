// SPDX-License-Identifier: Apache-2.0

// Takes the pictures of docs/user/img that show the page with Redis under load. `make pictures` runs it.
import { join } from "node:path";
import { afterAll, beforeAll, it } from "vitest";
import { chart, Tabs } from "./browser";
import { freePort, Processes, repository, sleep, startLoad, startRedis, startTeescope } from "./processes";

/** The time in which the charts get data: longer than the range of the pictures. */
const FILL_MS = 140_000;
/** Files by path, with a panel that must have data, and the height. */
const PICTURES: [file: string, path: string, panel: string, height: number][] = [
  ["overview", "/?range=2m&w=redis-server&w=redis-benchmark", "syscalls-by-workload", 1120],
  ["system", "/?page=system&range=2m&w=redis-server&w=redis-benchmark", "syscalls-by-workload", 1180],
];

const processes = new Processes();
const tabs = new Tabs();

beforeAll(async () => {
  await tabs.launch();
  startLoad(processes, await startRedis(processes));
  tabs.url = (await startTeescope(processes, await freePort(), processes.folder(), ["--syscalls.time", "--overhead.budget=100%"])).url;
  await sleep(FILL_MS);
});

afterAll(async () => {
  await tabs.quit();
  await processes.stopAll();
});

it.each(PICTURES)("takes %s", async (file, path, panel, height) => {
  const page = await tabs.visit(path, { viewport: { width: 1280, height }, colorScheme: "dark" });
  await page.waitForSelector(chart(panel));
  await sleep(5000); // for the other panels
  await page.screenshot({ path: join(repository, `docs/user/img/${file}.png`) });
});
