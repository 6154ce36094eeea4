// SPDX-License-Identifier: Apache-2.0

// Real programs for the browser tests: teescope, Redis and its benchmark, on free loopback ports and in temporary
// folders. All of them are stopped at the end.
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const execute = promisify(execFile);

export const repository = resolve(dirname(fileURLToPath(import.meta.url)), "../..");

/** Limit of each wait. It only ends what hangs: a wait that is long on a busy machine is not wrong. */
export const PATIENCE_SECONDS = 600;

/** The binary under test. */
export const teescopeBinary = resolve(repository, process.env["TEESCOPE_BIN"] ?? "bin/teescope");
export const resultsFolder = resolve(repository, "test-results/browser");

/** The worker of vitest that runs this file, of at most four. */
const WORKERS = 4;
const worker = Number(process.env["VITEST_POOL_ID"] ?? 0) % WORKERS;
let portsTried = randomInt(10_000);

/**
 * Returns a port that is free. No other program takes it before it is used: the kernel gives ports from 32768 on to
 * sockets that leave the choice to it, other workers have ports of their own, and the tests in Go use ports from 17500 on.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 10_000 + WORKERS * (portsTried++ % 1_800) + worker;
    const server = createServer();
    const free = await new Promise<boolean>((done) => {
      server.once("error", () => { done(false); });
      server.listen(port, "127.0.0.1", () => { done(true); });
    });
    if (!free) continue;
    await new Promise((done) => server.close(done));
    return port;
  }
}

/** Returns the environment without variables of teescope, which refuses unknown ones. */
function plainEnv(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([key]) => !key.startsWith("TEESCOPE_")));
}

export const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

/** Returns the value of the first series of a query, or undefined without a series. */
export async function queryValue(url: string, query: string): Promise<number | undefined> {
  const answer = await fetch(`${url}/api/v1/query?${new URLSearchParams({ query }).toString()}`);
  const { data } = (await answer.json()) as { data: { result: { value: [number, string] }[] } };
  const text = data.result[0]?.value[1];
  return text === undefined ? undefined : Number(text);
}

/** Polls until a probe returns a value. The error names what it waited for. */
export async function until<T>(what: string, seconds: number, probe: () => Promise<T | undefined>): Promise<T> {
  const deadline = Date.now() + seconds * 1000;
  for (;;) {
    const got = await probe().catch(() => undefined);
    if (got !== undefined) return got;
    if (Date.now() > deadline) throw new Error(`waiting ${seconds} s for ${what}`);
    await sleep(50);
  }
}

export class Processes {
  private readonly running: ChildProcess[] = [];
  private readonly folders: string[] = [];

  folder(): string {
    const made = mkdtempSync(join(tmpdir(), "teescope-browser-"));
    this.folders.push(made);
    return made;
  }

  /** Starts a program in a process group of its own. */
  start(command: string, args: readonly string[]): Started {
    const child = spawn(command, args, { detached: true, stdio: ["ignore", "pipe", "pipe"], cwd: repository, env: plainEnv() });
    const started: Started = { child, output: "", stop: () => stop(child) };
    child.stdout.on("data", (chunk: Buffer) => (started.output += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (started.output += chunk.toString()));
    child.on("error", (error) => (started.output += error.message));
    this.running.push(child);
    return started;
  }

  async stopAll(): Promise<void> {
    await Promise.all(this.running.map(stop));
    for (const folder of this.folders) rmSync(folder, { recursive: true, force: true });
  }
}

export interface Started {
  child: ChildProcess;
  output: string;
  stop: () => Promise<void>;
}

/** Terminates a process group, and kills it after a while. */
async function stop(child: ChildProcess): Promise<void> {
  const { pid } = child;
  const ended = (): boolean => child.exitCode !== null || child.signalCode !== null;
  if (pid === undefined || ended()) return;
  const gone = new Promise<void>((done) => child.once("exit", () => { done(); }));
  const signal = (name: NodeJS.Signals): void => {
    try {
      process.kill(-pid, name);
    } catch {
      // it had already ended
    }
  };
  signal("SIGTERM");
  await Promise.race([gone, sleep(8000)]);
  if (!ended()) signal("SIGKILL");
}

export interface Teescope extends Started {
  url: string;
  /** When the program was started, Unix milliseconds. */
  startedAt: number;
}

/** Starts `teescope up` and waits until it serves. */
export function startTeescope(processes: Processes, port: number, dataDir: string, more: readonly string[] = []): Promise<Teescope> {
  return startServing(processes, "up", port, dataDir, ["--watch", "comm=redis-server", ...more]);
}

/** Starts `teescope server`, which measures nothing itself, and waits until it serves. */
export function startServer(processes: Processes, port: number, dataDir: string, more: readonly string[]): Promise<Teescope> {
  return startServing(processes, "server", port, dataDir, more);
}

async function startServing(processes: Processes, command: string, port: number, dataDir: string, more: readonly string[]): Promise<Teescope> {
  const startedAt = Date.now();
  const started = processes.start(teescopeBinary, [command, "--listen", `127.0.0.1:${port}`, "--data-dir", dataDir, ...more]);
  const url = `http://127.0.0.1:${port}`;
  await until("teescope to be ready", PATIENCE_SECONDS, async () => {
    if (started.child.exitCode !== null) return true; // reported below, with its output
    return (await fetch(`${url}/-/ready`)).ok ? true : undefined;
  });
  if (started.child.exitCode !== null) throw new Error(`starting teescope: ${started.output}`);
  return Object.assign(started, { url, startedAt });
}

/** Starts Redis on a loopback port without persistence. */
export async function startRedis(processes: Processes): Promise<number> {
  const port = await freePort();
  const options = ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
  processes.start("redis-server", [...options, "--dir", processes.folder()]);
  await until("redis-server to answer", PATIENCE_SECONDS, async () => {
    const { stdout } = await execute("redis-cli", ["-p", String(port), "ping"]);
    return stdout.includes("PONG") || undefined;
  });
  return port;
}

/** Starts nginx with one worker on a loopback port, and returns its URL. */
export async function startNginx(processes: Processes): Promise<string> {
  const port = await freePort();
  const folder = processes.folder();
  const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((kind) => `${kind}_temp_path ${folder};`).join(" ");
  const config = join(folder, "nginx.conf");
  writeFileSync(
    config,
    `daemon off; worker_processes 1; pid ${folder}/pid; error_log ${folder}/error.log; events {}
http { access_log off; ${paths} keepalive_requests 100000000; server { listen 127.0.0.1:${port}; location / { return 200 "hello\n"; } } }\n`,
  );
  processes.start("/usr/sbin/nginx", ["-c", config, "-p", folder]);
  const url = `http://127.0.0.1:${port}/`;
  await until("nginx to answer", PATIENCE_SECONDS, async () => (await fetch(url)).ok || undefined);
  return url;
}

/** Compiles and starts a program of test/e2e/progs. Its name becomes its workload's name. */
export async function startProgram(processes: Processes, source: string, name: string, args: readonly string[] = []): Promise<Started> {
  const program = join(processes.folder(), name);
  await execute("gcc", ["-O1", "-static", "-o", program, join(repository, "test/e2e/progs", `${source}.c`)]);
  return processes.start(program, args);
}

/** Puts a light load on nginx, because all files of tests share the processors: a thousand requests by one connection, and a pause. */
export function startRequests(processes: Processes, url: string): Started {
  return processes.start("sh", ["-c", `while curl --silent --output /dev/null '${url}?[1-1000]'; do sleep 0.9; done`]);
}

/**
 * Puts a light load on Redis: nearly 6,000 commands a second, which are at least 12,000 system calls. A busy workload of
 * the simulated machine makes 5,000, and charts name the busiest.
 */
export function startLoad(processes: Processes, redisPort: number): Started {
  const benchmark = `redis-benchmark -h 127.0.0.1 -p ${redisPort} -t set,get -c 2 -n 3000 -q`;
  return processes.start("sh", ["-c", `while ${benchmark}; do sleep 0.9; done`]);
}
