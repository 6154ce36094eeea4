// SPDX-License-Identifier: Apache-2.0

// Demonstrations: emulated machines with teescope in them.
import type { Tabs } from "./browser";
import { freePort, type Processes, type Started, teescopeBinary, until } from "./processes";

/** An emulated machine boots slowly on a busy host. A failed boot is repeated. */
const BOOT_SECONDS = 1800;
/** The limit for a hook that starts a demonstration. */
export const START_MILLISECONDS = (BOOT_SECONDS + 30) * 1000;

/** Starts a demonstration, and waits until its page answers, which the tabs then show. */
export async function startDemo(processes: Processes, tabs: Tabs, kind: "sgx" | "cvm"): Promise<Started> {
  const port = await freePort();
  tabs.url = `http://127.0.0.1:${port}`;
  const demo = processes.start(teescopeBinary, ["demo", kind, "--no-browser", "--listen", `127.0.0.1:${port}`]);
  await until("the page of the virtual machine", BOOT_SECONDS, async () => {
    if (demo.child.exitCode !== null) return true; // reported below, with its output
    return (await fetch(`${tabs.url}/-/ready`)).ok ? true : undefined;
  });
  if (demo.child.exitCode !== null) throw new Error(`starting the virtual machine: ${demo.output}`);
  return demo;
}
