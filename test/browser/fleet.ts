// SPDX-License-Identifier: Apache-2.0

// A machine that is not there: what the agent of one with many containers
// would say, for lists that no test machine can fill.
import { createServer, type Server } from "node:http";

export interface Fleet {
  /** What the label instance of its series is. */
  instance: string;
  close: () => void;
}

export const FLEET_WORKLOADS = 128;
export const FLEET_CONTAINERS = 300;

const id = (i: number): string => (0xabc000000000 + i).toString(16);

/** The exposition: every fourth container is of a pod, every tenth workload has the runtime “made”. `programs` are there too. */
export function exposition(seconds: number, programs: readonly string[] = []): string {
  const lines: string[] = [];
  for (const name of programs) {
    lines.push(`teescope_workload_info{workload="${name}",container="",pod="",namespace="",kind="program",tee="",runtime=""} 1`);
    lines.push(`teescope_syscalls_total{workload="${name}",syscall="read"} ${Math.round(seconds % 1e6) * 1000}`);
    lines.push(`teescope_cpu_seconds_total{workload="${name}",mode="user"} ${(seconds % 1e6) / 4}`);
  }
  for (let i = 0; i < FLEET_CONTAINERS; i++) {
    const [container, pod] = i % 4 === 0 ? [i % 8 === 0 ? "app" : "proxy", `shop-${i}`] : [id(i), ""];
    const named = `id="/docker/${id(i)}",name="${pod === "" ? `cache-${i}` : id(i)}",image="",container="${container}",pod="${pod}",namespace=""`;
    lines.push(`teescope_container_info{workload="${id(i)}",${named}} 1`, `container_last_seen{${named}} ${seconds}`);
    lines.push(`container_memory_working_set_bytes{${named}} ${1e6 * (i + 1)}`);
    if (i >= FLEET_WORKLOADS) continue;
    const own = `workload="${id(i)}",container="${id(i)}",pod="",namespace=""`;
    lines.push(`teescope_workload_info{${own},kind="container",tee="",runtime="${i % 10 === 0 ? "made" : ""}"} 1`);
    lines.push(`teescope_syscalls_total{${own},syscall="read"} ${Math.round(seconds % 1e6) * (i + 1)}`);
    lines.push(`teescope_cpu_seconds_total{${own},mode="user"} ${(seconds % 1e6) / (i + 10)}`);
  }
  return `${lines.join("\n")}\n`;
}

export async function startFleet(programs: readonly string[] = []): Promise<Fleet> {
  const server: Server = createServer((_, answer) => {
    answer.setHeader("Content-Type", "text/plain; version=0.0.4");
    answer.end(exposition(Date.now() / 1000, programs));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the fleet has no port");
  return {
    instance: `127.0.0.1:${address.port}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
