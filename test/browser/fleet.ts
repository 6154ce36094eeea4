// SPDX-License-Identifier: Apache-2.0

// Simulates agents of machines that no test machine can be, such as one with many containers.
import { createServer, type Server } from "node:http";
import { PATIENCE_SECONDS, until } from "./processes";

export interface Fleet {
  /** Label instance of its series. */
  instance: string;
  close: () => void;
}

export const FLEET_WORKLOADS = 128;
export const FLEET_CONTAINERS = 300;

/** The name of a workload, and of a container without a name. */
export const fleetId = (i: number): string => (0xabc000000000 + i).toString(16);

const SYSCALLS = ["read", "write", "futex", "openat", "close", "mmap", "poll", "brk"];

/** Numbers of containers and workloads; `programs` are workloads outside containers. */
export interface FleetSize {
  workloads?: number;
  containers?: number;
  programs?: readonly string[];
}

/**
 * Returns the metrics at a time. Every fourth container belongs to a pod, every tenth workload has the runtime
 * “made”.
 */
export function exposition(seconds: number, { workloads = FLEET_WORKLOADS, containers = FLEET_CONTAINERS, programs = [] }: FleetSize = {}): string {
  const lines: string[] = [];
  const age = Math.round(seconds % 1e6);
  for (const name of programs) {
    lines.push(`teescope_workload_info{workload="${name}",container="",pod="",namespace="",kind="program",tee="",runtime=""} 1`);
    lines.push(`teescope_syscalls_total{workload="${name}",syscall="read"} ${age * 1000}`);
    lines.push(`teescope_cpu_seconds_total{workload="${name}",mode="user"} ${(seconds % 1e6) / 4}`);
  }
  for (let i = 0; i < containers; i++) {
    const [container, pod] = i % 4 === 0 ? [i % 8 === 0 ? "app" : "proxy", `shop-${i}`] : [fleetId(i), ""];
    const named = `id="/docker/${fleetId(i)}",name="${pod === "" ? `cache-${i}` : fleetId(i)}",image="",container="${container}",pod="${pod}",namespace=""`;
    lines.push(`teescope_container_info{workload="${fleetId(i)}",${named}} 1`, `container_last_seen{${named}} ${seconds}`);
    lines.push(`container_memory_working_set_bytes{${named}} ${1e6 * (i + 1) * (1 + (age % 10))}`);
    if (i >= workloads) continue;
    const own = `workload="${fleetId(i)}",container="${fleetId(i)}",pod="",namespace=""`;
    lines.push(`teescope_workload_info{${own},kind="container",tee="",runtime="${i % 10 === 0 ? "made" : ""}"} 1`);
    lines.push(`teescope_processes{${own}} 1`, `teescope_resident_memory_bytes{${own}} ${1e6 * (i + 1)}`);
    SYSCALLS.forEach((name, k) => lines.push(`teescope_syscalls_total{${own},syscall="${name}"} ${age * (i + 1) * (k + 1)}`));
    for (const kind of ["voluntary", "involuntary"]) lines.push(`teescope_context_switches_total{${own},kind="${kind}"} ${age * (i + 2)}`);
    for (const mode of ["user", "kernel"]) lines.push(`teescope_page_faults_total{${own},mode="${mode}",reason="not_present"} ${age * (i + 3)}`);
    for (const mode of ["user", "system"]) lines.push(`teescope_cpu_seconds_total{${own},mode="${mode}"} ${(seconds % 1e6) / (i + 10)}`);
  }
  return `${lines.join("\n")}\n`;
}

export const startFleet = (size: FleetSize = {}): Promise<Fleet> => serve((seconds) => exposition(seconds, size));

/** Starts an agent that serves the metrics of a time. */
export async function serve(metrics: (seconds: number) => string): Promise<Fleet> {
  const server: Server = createServer((_, answer) => {
    answer.setHeader("Content-Type", "text/plain; version=0.0.4");
    answer.end(metrics(Date.now() / 1000));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the simulated agent has no port");
  return {
    instance: `127.0.0.1:${address.port}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Returns the label instance of this machine, once both machines have a rate of these calls. */
export function instanceHere(url: string, fleet: Fleet, calls = "teescope_syscalls_total"): Promise<string> {
  const query = encodeURIComponent(`count(rate(${calls}[1m])) by (instance)`);
  return until("both machines to be scraped twice", PATIENCE_SECONDS, async () => {
    const answer = await fetch(`${url}/api/v1/query?query=${query}`);
    const { data } = (await answer.json()) as { data: { result: { metric: { instance: string } }[] } };
    const others = data.result.map((r) => r.metric.instance).filter((instance) => instance !== fleet.instance);
    return data.result.length === 2 ? others[0] : undefined;
  });
}
