// SPDX-License-Identifier: Apache-2.0

// Takes the pictures of docs/user/img: the page with Redis under load, and with the enclaves of `teescope demo sgx`. `make pictures`
// runs it.
import { join } from "node:path";
import type { Page } from "playwright-core";
import sharp from "sharp";
import { afterAll, beforeAll, describe, it } from "vitest";
import { chart, Tabs } from "./browser";
import { START_MILLISECONDS, startDemo } from "./demos";
import { freePort, Processes, queryValue, repository, sleep, startLoad, startRedis, startTeescope, until } from "./processes";

/** The time in which the charts get data: longer than the range of the pictures. */
const FILL_MS = 140_000;
/** A busy machine delays the scrapes in the emulated one, and the picture must not have their gaps. */
const DEMO_SECONDS = 1500;
/** Files by path, with a panel that must have data, and the height. */
const PICTURES: [file: string, path: string, panel: string, height: number][] = [
  ["overview", "/?range=2m&w=redis-server&w=redis-benchmark", "syscalls-by-workload", 1120],
  ["system", "/?page=system&range=2m&w=redis-server&w=redis-benchmark", "syscalls-by-workload", 1180],
];

/** Writes a picture with a palette, which takes a third of the bytes. The page has few colours, so that no difference is seen. */
async function write(page: Page, file: string): Promise<void> {
  await sharp(await page.screenshot()).png({ palette: true, colours: 256, dither: 0, effort: 10 }).toFile(join(repository, `docs/user/img/${file}.png`));
}

describe("Redis under load", () => {
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
    await write(page, file);
  });
});

describe("two slow enclaves", () => {
  const processes = new Processes();
  const tabs = new Tabs();

  beforeAll(async () => {
    await tabs.launch();
    await startDemo(processes, tabs, "sgx");
  }, START_MILLISECONDS);

  afterAll(async () => {
    await tabs.quit();
    await processes.stopAll();
  });

  it("takes tee", async () => {
    const complete = [
      "sum(rate(sgx_workload_pages_loaded_back_total[1m])) > 0",
      "sum(rate(teescope_ocalls_total[1m])) > 0",
      '(count_over_time(up{job="teescope"}[2m]) > 22 and min_over_time(up{job="teescope"}[2m]) > 0)',
    ].join(" and on () ");
    const page = await tabs.visit("/?page=tee&range=2m", { viewport: { width: 1280, height: 1180 }, colorScheme: "dark" });
    do {
      await until(complete, DEMO_SECONDS, () => queryValue(tabs.url, complete));
      await page.waitForSelector('[data-panel="tee-epc-gauge"][data-state="ready"]');
      await page.waitForSelector(chart("tee-working-set"));
      await sleep(5000); // for the other panels
      await write(page, "tee");
    } while ((await queryValue(tabs.url, complete)) === undefined);
  }, DEMO_SECONDS * 1000);
});
