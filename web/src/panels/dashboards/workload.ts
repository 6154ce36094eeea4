// SPDX-License-Identifier: Apache-2.0

// Everything about one workload on one page, after Figure 3 of TEEMon (Middleware 2020). It filters the panels of
// other pages and defines none of its own.
import type { Section } from "../types";
import { CONTAINERS, CONTAINER_TABLE } from "./containers";
import { pick } from "./pick";
import { SYSTEM } from "./system";
import { TEE } from "./tee";

export const WORKLOAD_KERNEL: readonly Section[] = [
  { id: "workload-calls", title: "System calls", panels: pick(SYSTEM, "syscalls-by-name", "syscall-time", "syscall-errors") },
  {
    id: "workload-processor",
    title: "Processor and scheduling",
    panels: pick(SYSTEM, "cpu-by-mode", "context-switches", "run-queue-wait", "run-queue-latency", "cpu-migrations", "llc", "llc-miss-share"),
  },
  {
    id: "workload-memory",
    title: "Memory",
    panels: pick(SYSTEM, "page-faults-by-reason", "page-faults-major-minor", "resident-memory", "page-cache-operations"),
  },
  { id: "workload-disks", title: "Block devices", panels: pick(SYSTEM, "block-latency", "block-requests", "block-bytes") },
  { id: "workload-processes", title: "Processes", panels: pick(SYSTEM, "processes-threads", "process-life") },
];

/** Shown where the workload uses a TEE. */
export const WORKLOAD_TEE: readonly Section[] = [
  { id: "workload-epc", title: "Enclave memory", panels: pick(TEE, "tee-epc-use", "tee-working-set", "tee-loaded-back", "tee-faults") },
  { id: "workload-boundary", title: "Enclave boundary", panels: pick(TEE, "tee-transitions", "tee-aex-causes", "tee-boundary-bytes", "tee-ocalls", "tee-ocall-time", "tee-ecalls") },
  {
    id: "workload-epc-machine",
    title: "Waiting for enclave memory, on the whole machine",
    panels: pick(TEE, "tee-paging", "tee-load-back-time", "tee-reclaim-time"),
  },
];

/** Shown where the workload runs in containers. */
export const WORKLOAD_CONTAINERS: readonly Section[] = [
  { id: "workload-containers", title: "Containers and their limits", panels: [CONTAINER_TABLE] },
  {
    id: "workload-limits",
    title: "Limits",
    panels: pick(CONTAINERS, "container-throttled-share", "container-memory-share", "container-pressure-cpu"),
  },
];

export const WORKLOAD: readonly Section[] = [...WORKLOAD_KERNEL, ...WORKLOAD_TEE, ...WORKLOAD_CONTAINERS];
