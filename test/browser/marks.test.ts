// SPDX-License-Identifier: Apache-2.0

// Marks of real programs: one is replaced by another build, one is restarted, one forks children and runs helpers all
// the time. Covers charts of panels, Explore and Compare, filters, keys, and reports.
import { execFile } from "node:child_process";
import { chmodSync, copyFileSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import type { Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { chart, holds, screenshot, seriousViolations, shown, Tabs } from "./browser";
import { freePort, PATIENCE_SECONDS, Processes, queryValue, startTeescope, teescopeBinary, until } from "./processes";

const processes = new Processes();
const tabs = new Tabs();
const files = new Tabs();
let folder: string;

const reported = (workload: string, change: string): Promise<number | undefined> =>
  queryValue(tabs.url, `teescope_workload_change_timestamp_seconds{workload="${workload}",change="${change}"}`);

/** Compiles a program that only waits. Its name becomes its workload's name. */
function waiter(name: string): string {
  const file = join(folder, name);
  copyFileSync("/bin/sleep", file);
  chmodSync(file, 0o755);
  return file;
}

/** Replaces the program at a path by another build. */
function rebuild(file: string): void {
  writeFileSync(`${file}.new`, Buffer.concat([readFileSync(file), Buffer.from([0])]), { mode: 0o755 });
  renameSync(`${file}.new`, file);
}

/** Restarts a program after scrapes that have seen its main process, which is one after five seconds. */
async function startAgain(name: string, change: string, between: (file: string) => void): Promise<void> {
  const file = waiter(name);
  const first = processes.start(file, ["100000"]);
  const old = Date.now() / 1000 + 8;
  await until(`${name} to be scraped`, PATIENCE_SECONDS, () => queryValue(tabs.url, `timestamp(teescope_processes{workload="${name}"}) > ${old}`));
  await first.stop();
  between(file);
  processes.start(file, ["100000"]);
  await until(`the ${change} of ${name}`, PATIENCE_SECONDS, () => reported(name, change));
}

beforeAll(async () => {
  folder = processes.folder();
  await tabs.launch();
  await files.launch();
  tabs.url = (await startTeescope(processes, await freePort(), processes.folder(), ["--interval", "1s"])).url;
  // Helpers that end at once, and one that lives as long as a main process must have lived.
  const script = join(folder, "markforks");
  writeFileSync(script, `#!/bin/sh\nwhile :; do (:); /bin/true; "${waiter("markhelper")}" 6; done\n`, { mode: 0o755 });
  processes.start(script, []);
  await Promise.all([startAgain("markbuild", "deployment", rebuild), startAgain("markagain", "restart", () => undefined)]);
  await until("three helpers", PATIENCE_SECONDS, async () => ((await queryValue(tabs.url, 'teescope_execs_total{workload="markhelper"} >= 3')) === undefined ? undefined : true));
});

afterAll(async () => {
  await tabs.quit();
  await files.quit();
  await processes.stopAll();
});

afterEach(async () => {
  await tabs.close();
  await files.close();
});

/** Opens the list of marks of a panel. */
async function listOf(page: Page, panel: string): Promise<Locator> {
  const marks = page.locator(`[data-panel="${panel}"] details.marks`);
  await marks.locator("summary").click();
  return marks.locator("li");
}

const BUILD = /markbuild on .+ runs another program file than before/;
const AGAIN = /markagain on .+ was restarted/;

it("distinguishes a deployment from a restart, and marks neither helpers nor children", async () => {
  const page = await tabs.visit("/?page=system&range=1h");
  const list = await listOf(page, "context-switches-by-workload");
  const [build, again] = [list.filter({ hasText: BUILD }), list.filter({ hasText: AGAIN })];
  await build.first().waitFor();
  await again.first().waitFor();
  await shown(() => build.first().locator(".flag").textContent()).toBe("D");
  await shown(() => again.first().locator(".flag").textContent()).toBe("R");
  expect(await list.filter({ hasText: /markbuild .* restarted|markagain .* runs another|markforks|markhelper/ }).allTextContents()).toEqual([]);
  expect(await reported("markforks", "restart")).toBeUndefined();
  expect(await reported("markhelper", "restart")).toBeUndefined();
  expect(await seriousViolations(page)).toEqual([]);
  await screenshot(page, "marks");
});

it("selects a mark by keys, and then names it on every chart", async () => {
  const page = await tabs.visit("/?page=system&range=1h");
  const list = await listOf(page, "context-switches-by-workload");
  await page.waitForSelector(chart("syscalls-by-workload"));
  await list.filter({ hasText: BUILD }).first().locator("button").focus();
  await holds(
    page,
    `/^At .*markbuild on .+ runs another program/.test(document.querySelector('[data-panel="syscalls-by-workload"] .at')?.textContent ?? "")`,
  );
});

it("keeps to the filter of workloads", async () => {
  const page = await tabs.visit("/?page=workload&range=1h&w=markbuild");
  const marks = page.locator("details.marks").first();
  await marks.locator("summary").click();
  const list = marks.locator("li");
  await list.filter({ hasText: BUILD }).first().waitFor();
  expect(await list.filter({ hasText: "markagain" }).count()).toBe(0);
});

it("marks the charts of Explore and of both sides of a comparison", async () => {
  const explore = await tabs.visit("/?page=explore&range=1h&expr=teescope_processes");
  await (await listOf(explore, "result-0")).filter({ hasText: BUILD }).first().waitFor();
  const compare = await tabs.visit("/?page=compare&range=1h&a=markbuild&b=markagain");
  // The charts are ordered by how much they differ, which may change. This one is always there.
  const list = compare.locator('[data-panel="pair-cpu-by-workload/total"]');
  await list.locator("details.marks summary").click();
  await list.locator("li", { hasText: /A: markbuild on .+ runs another program/ }).first().waitFor();
  await list.locator("li", { hasText: /B: markagain on .+ was restarted/ }).first().waitFor();
  expect(await seriousViolations(compare)).toEqual([]);
});

it("are in a report, to the second", async () => {
  const at = (await reported("markbuild", "deployment")) ?? 0;
  const file = join(folder, "report.html");
  await promisify(execFile)(teescopeBinary, ["report", "--server", tabs.url, "--window", "1h", "-o", file]);
  const page = await files.visit(pathToFileURL(file).href);
  const list = await listOf(page, "context-switches-by-workload");
  const clock = new Date(at * 1000).toISOString().slice(11, 19);
  await list.filter({ hasText: `${clock} markbuild` }).first().waitFor();
  await list.filter({ hasText: AGAIN }).first().waitFor();
});
