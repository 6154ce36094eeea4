// SPDX-License-Identifier: Apache-2.0

// The TEE page on confidential virtual machines, GPUs, vsock and Nitro Enclaves, with the metrics of a simulated agent. The
// names and labels are those of the reference of metrics.
import type { Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { CONFIDENTIAL, GPUS, VIRTUAL, VSOCK } from "../../web/src/panels/dashboards/virtual";
import { chart, screenshot, seriousViolations, shown, Tabs } from "./browser";
import { type Fleet, serve } from "./fleet";
import { freePort, Processes, startServer } from "./processes";

const SECTIONS = [VIRTUAL, CONFIDENTIAL, GPUS, VSOCK];
const processes = new Processes();
const tabs = new Tabs();
let agent: Fleet;

/** Lines of a counter that grows by these amounts each second, by labels. */
const counter = (age: number, name: string, rates: Readonly<Record<string, number>>): string[] =>
  Object.entries(rates).map(([labels, rate]) => `${name}{${labels}} ${Math.round(age * rate * 1e6) / 1e6}`);

const vm = (name: string, tee: string, workload: string, pid: number): string =>
  `teescope_vm_info{vm="${name}",tee="${tee}",vmm="qemu",sandbox="",workload="${workload}",container="",pod="",namespace="",pid="${pid}"} 1`;

const of = (workload: string): string => `workload="${workload}",container="",pod="",namespace=""`;

/**
 * A host whose machine "storm" leaves its guest because of CPUID, beside an idle one. It is itself a confidential machine
 * without room for its disk, uses GPUs that are not ready, and is the parent of a Nitro Enclave.
 */
function metrics(seconds: number): string {
  const age = seconds % 1e6;
  const copies = (kind: string, bytes: number, blocked: number): string[] => [
    ...counter(age, `teescope_user_cuda_${kind}_bytes_total`, { [of("trainer")]: bytes }),
    ...counter(age, `teescope_user_cuda_${kind}_blocked_seconds_sum`, { [of("trainer")]: blocked }),
    ...counter(age, `teescope_user_cuda_${kind}_blocked_seconds_count`, { [of("trainer")]: 100 }),
  ];
  const lines = [
    ...["kvm-storm", "kvm-idle", "trainer"].map((name) => `teescope_workload_info{${of(name)},kind="program",tee="",runtime=""} 1`),
    ...counter(age, "teescope_cpu_seconds_total", { [`${of("kvm-storm")},mode="user"`]: 0.5, [`${of("kvm-idle")},mode="user"`]: 0.01, [`${of("trainer")},mode="user"`]: 0.9 }),
    vm("storm", "sev-snp", "kvm-storm", 70),
    vm("idle", "tdx", "kvm-idle", 71),
    ...counter(age, "teescope_vm_exits_total", {
      'vm="storm",reason="cpuid"': 40_000, 'vm="storm",reason="error"': 0, 'vm="idle",reason="hlt"': 4, 'vm="idle",reason="cpuid"': 0,
    }),
    ...counter(age, "teescope_vm_exit_seconds_total", {
      'vm="storm",reason="cpuid"': 0.4, 'vm="storm",reason="error"': 0, 'vm="idle",reason="hlt"': 0.99, 'vm="idle",reason="cpuid"': 0,
    }),
    ...counter(age, "teescope_vm_userspace_exits_total", { 'vm="storm",reason="io"': 7, 'vm="storm",reason="mmio"': 0, 'vm="idle",reason="io"': 1 }),
    'teescope_guest_info{tee="sev",halt="",idle_driver="haltpoll"} 1',
    "teescope_bounce_pool_bytes 1048576",
    "teescope_bounce_pool_used_bytes 4096",
    "teescope_bounce_pool_used_max_bytes 1044480",
    ...counter(age, "teescope_bounce_mappings_total", { 'class="storage",direction="from_device"': 500, 'class="network",direction="both"': 0 }),
    ...counter(age, "teescope_bounce_failures_total", { 'class="storage",direction="from_device"': 12, 'class="network",direction="both"': 0 }),
    ...counter(age, "teescope_workload_bounce_bytes_total", { [`${of("trainer")},class="storage"`]: 2e6 }),
    ...counter(age, "teescope_guest_exceptions_total", { 'reason="cpuid",mode="user"': 300, 'reason="hlt",mode="kernel"': 0 }),
    ...counter(age, "teescope_memory_converted_bytes_total", { 'to="shared"': 8192, 'to="private"': 8192 }),
    ...counter(age, "teescope_ipis_total", { 'kind="reschedule"': 90, 'kind="call"': 10, 'kind="tlb"': 2 }),
    `teescope_idle_entries_total ${Math.round(age * 300)}`,
    'teescope_gpu_confidential_info{mode="protected_pcie",environment="production",devtools="off",cpu="sev-snp",gpus="hcc"} 1',
    "teescope_gpu_ready 0",
    ...copies("to_gpu", 5e6, 0.1), ...copies("to_gpu_async", 9e6, 0.4), ...copies("from_gpu", 1e6, 0.05), ...copies("from_gpu_async", 2e6, 0.1),
    ...counter(age, "teescope_user_cuda_launches_total", { [of("trainer")]: 2000 }),
    ...counter(age, "teescope_user_cuda_graph_launches_total", { [of("trainer")]: 20 }),
    'teescope_nitro_enclave_info{pid="900",name="signer",cid="16"} 1',
    'teescope_nitro_enclave_cpus{pid="900"} 2',
    'teescope_nitro_enclave_memory_bytes{pid="900"} 1073741824',
    ...["sent", "received"].flatMap((direction) => [
      ...counter(age, "teescope_vsock_bytes_total", { [`cid="16",direction="${direction}"`]: 1e6 }),
      ...counter(age, "teescope_vsock_packets_total", { [`cid="16",direction="${direction}"`]: 250 }),
      ...counter(age, "teescope_vsock_connection_requests_total", { [`cid="16",direction="${direction}"`]: 3 }),
      ...counter(age, "teescope_vsock_resets_total", { [`cid="16",direction="${direction}"`]: 1 }),
    ]),
  ];
  return `${lines.join("\n")}\n`;
}

beforeAll(async () => {
  await tabs.launch();
  agent = await serve(metrics);
  const options = ["--targets", agent.instance, "--interval", "1s", "--analysis.interval", "2s", "--analysis.window", "12s"];
  tabs.url = (await startServer(processes, await freePort(), processes.folder(), options)).url;
});

afterEach(() => tabs.close());

afterAll(async () => {
  await tabs.quit();
  agent.close();
  await processes.stopAll();
});

const panelOf = (page: Page, id: string): Locator => page.locator(`[data-panel="${id}"]`);
const legend = async (page: Page, id: string): Promise<string> =>
  [...(await panelOf(page, id).locator(".legend .name").allTextContents())].sort().join();

it("shows every panel with data, and tables as a whole", async () => {
  const page = await tabs.visit("/?page=tee&range=1m", { viewport: { width: 1280, height: 3000 } });
  for (const def of SECTIONS.flatMap((section) => section.panels)) {
    await panelOf(page, def.id).scrollIntoViewIfNeeded();
    await page.waitForSelector(def.kind === "table" ? `[data-panel="${def.id}"][data-state="ready"]` : chart(def.id));
  }
  for (const [id, texts] of Object.entries({
    // 40,000 exits a second: the server reads the counter a little after the time that it stores.
    "vm-table": [/storm/, /sev-snp/, /idle/, /tdx/, / (3[6-9]|4[0-4])(\.\d+)?k\/s/],
    "gpu-state": [/protected_pcie/, /production/],
    "nitro-table": [/signer/, /16/, /1 GiB/],
  })) {
    for (const text of texts) await shown(async () => (await panelOf(page, id).locator("tbody :is(th, td)").allTextContents()).join(" "), id).toMatch(text);
    const hidden = `(() => { const t = document.querySelector('[data-panel="${id}"] .table-scroll'); return t.scrollWidth - t.clientWidth; })()`;
    expect(await page.evaluate<number>(hidden), `pixels of ${id} that are not visible`).toBe(0);
  }
  await screenshot(page, "tee-confidential");
  expect(await seriousViolations(page)).toEqual([]);
});

it("names only what happens", async () => {
  const page = await tabs.visit("/?page=tee&range=1m", { viewport: { width: 1280, height: 3000 } });
  for (const [id, names] of Object.entries({
    "vm-exits": "cpuid,hlt", "vm-outside": "storm: cpuid", "vm-userspace": "idle: io,storm: io", "bounce-failures": "storage", "guest-exceptions": "cpuid, user",
    "bounce-pool": "in use,most since boot,size",
  })) {
    await panelOf(page, id).scrollIntoViewIfNeeded();
    await shown(() => legend(page, id), id).toBe(names);
  }
});

it("names the exit storm with its remedy, and not the idle machine", async () => {
  const page = await tabs.visit("/?page=findings");
  const card = page.locator('[data-panel="all-findings"] [data-finding="vm-exits"]');
  await card.first().waitFor();
  expect(await card.count()).toBe(1);
  const text = (await card.textContent()) ?? "";
  for (const part of ["kvm-storm", "because of cpuid", "find the program in the guest that executes CPUID"]) expect(text).toContain(part);
  expect(await card.locator("td a").allTextContents()).toEqual(["Time outside of the guests", "Exits by reason", "CPU by mode"]);
  await screenshot(page, "findings-confidential");
});
