// SPDX-License-Identifier: Apache-2.0

// The list of panels, in the order in which pages show them. To add a panel:
// write one file beside this one, and add one line here.
import type { BoxDef, FigureDef, PanelDef, Section, TableDef } from "../types";
import { agentCpu } from "./agent-cpu";
import { agentMemory } from "./agent-memory";
import { build } from "./build";
import { collectors } from "./collectors";
import { containerCpu } from "./container-cpu";
import { containerEpc } from "./container-epc";
import { containerFsReads } from "./container-fs-reads";
import { containerFsWrites } from "./container-fs-writes";
import { containerMemory } from "./container-memory";
import { containerMemoryShare } from "./container-memory-share";
import { containerNetworkReceived } from "./container-network-received";
import { containerNetworkSent } from "./container-network-sent";
import { containerPressureCpu } from "./container-pressure-cpu";
import { containerPressureIo } from "./container-pressure-io";
import { containerPressureMemory } from "./container-pressure-memory";
import { containerThreads } from "./container-threads";
import { containerThrottledShare } from "./container-throttled-share";
import { containerThrottledTime } from "./container-throttled-time";
import { containers } from "./containers";
import { contextSwitches } from "./context-switches";
import { contextSwitchesByWorkload } from "./context-switches-by-workload";
import { cpuByMode } from "./cpu-by-mode";
import { cpuByWorkload } from "./cpu-by-workload";
import { cpuMigrations } from "./cpu-migrations";
import { llc } from "./llc";
import { llcMissShare } from "./llc-miss-share";
import { maps } from "./maps";
import { nodeContextSwitches } from "./node-context-switches";
import { nodeCpu } from "./node-cpu";
import { nodeDiskLatency } from "./node-disk-latency";
import { nodeDiskOperations } from "./node-disk-operations";
import { nodeDiskThroughput } from "./node-disk-throughput";
import { nodeDiskUtilisation } from "./node-disk-utilisation";
import { nodeFilesystemUse } from "./node-filesystem-use";
import { nodeFilesystems } from "./node-filesystems";
import { nodeForks } from "./node-forks";
import { nodeLoad } from "./node-load";
import { nodeMemory } from "./node-memory";
import { nodeNetworkErrors } from "./node-network-errors";
import { nodeNetworkReceived } from "./node-network-received";
import { nodeNetworkSent } from "./node-network-sent";
import { nodeNumaMemory } from "./node-numa-memory";
import { nodeOomKills } from "./node-oom-kills";
import { nodePageFaults } from "./node-page-faults";
import { nodePaging } from "./node-paging";
import { nodePressure } from "./node-pressure";
import { nodeProcs } from "./node-procs";
import { nodeSwap } from "./node-swap";
import { pageCacheOperations } from "./page-cache-operations";
import { pageFaultsByMode } from "./page-faults-by-mode";
import { pageFaultsByReason } from "./page-faults-by-reason";
import { pageFaultsByWorkload } from "./page-faults-by-workload";
import { pageFaultsMajorMinor } from "./page-faults-major-minor";
import { probeCost } from "./probe-cost";
import { probes } from "./probes";
import { processLife } from "./process-life";
import { processesThreads } from "./processes-threads";
import { programs } from "./programs";
import { residentMemory } from "./resident-memory";
import { runQueueWait } from "./run-queue-wait";
import { scrapeDuration } from "./scrape-duration";
import { selfShare } from "./self-share";
import { seriesCount } from "./series-count";
import { syscallErrors } from "./syscall-errors";
import { syscallShares } from "./syscall-shares";
import { syscallTime } from "./syscall-time";
import { syscallsByName } from "./syscalls-by-name";
import { syscallsByWorkload } from "./syscalls-by-workload";
import { teeEcallHeat } from "./tee-ecall-heat";
import { teeEcallTime } from "./tee-ecall-time";
import { teeEcalls } from "./tee-ecalls";
import { teeEnclaveChurn } from "./tee-enclave-churn";
import { teeEnclaveStart } from "./tee-enclave-start";
import { teeEnclaveTable } from "./tee-enclave-table";
import { teeEnclaves } from "./tee-enclaves";
import { teeEncls } from "./tee-encls";
import { teeEpcGauge } from "./tee-epc-gauge";
import { teeEpcUse } from "./tee-epc-use";
import { teeEstimatedExits } from "./tee-estimated-exits";
import { teeFaults } from "./tee-faults";
import { teeLoadBackHeat } from "./tee-load-back-heat";
import { teeLoadBackTime } from "./tee-load-back-time";
import { teeLoadedBack } from "./tee-loaded-back";
import { teeNeighbours } from "./tee-neighbours";
import { teeOcallHeat } from "./tee-ocall-heat";
import { teeOcallTime } from "./tee-ocall-time";
import { teeOcalls } from "./tee-ocalls";
import { teePaging } from "./tee-paging";
import { teeReclaimHeat } from "./tee-reclaim-heat";
import { teeReclaimTime } from "./tee-reclaim-time";
import { teeTransitions } from "./tee-transitions";
import { teeTransitionsByWorkload } from "./tee-transitions-by-workload";
import { teeWorkingSet } from "./tee-working-set";
import { topSyscalls } from "./top-syscalls";
import { windows } from "./windows";
import { workloads } from "./workloads";

export const SYSTEM: readonly Section[] = [
  { id: "system-calls", title: "System calls", panels: [syscallsByName, syscallsByWorkload, syscallTime, syscallErrors, syscallShares] },
  {
    id: "scheduling",
    title: "Scheduling",
    panels: [contextSwitches, contextSwitchesByWorkload, runQueueWait, cpuMigrations],
  },
  {
    id: "memory",
    title: "Memory",
    panels: [
      pageFaultsByReason,
      pageFaultsByMode,
      pageFaultsByWorkload,
      pageFaultsMajorMinor,
      residentMemory,
      pageCacheOperations,
    ],
  },
  { id: "processor", title: "Processor", panels: [cpuByMode, cpuByWorkload, llc, llcMissShare] },
  { id: "processes", title: "Processes", panels: [processesThreads, processLife] },
];

export const TEE: readonly Section[] = [
  { id: "tee-memory", title: "Enclave memory", panels: [teeEpcGauge, teeEpcUse, teeWorkingSet, teePaging, teeLoadedBack, teeFaults] },
  { id: "tee-waiting", title: "Waiting for enclave memory", panels: [teeLoadBackHeat, teeLoadBackTime, teeReclaimHeat, teeReclaimTime] },
  { id: "tee-boundary", title: "Crossing the boundary", panels: [teeTransitions, teeTransitionsByWorkload, teeOcalls, teeEcalls, teeOcallTime, teeOcallHeat, teeEcallTime, teeEcallHeat, teeEstimatedExits] },
  { id: "tee-life", title: "Enclaves and their life", panels: [teeEnclaves, teeEnclaveChurn, teeEnclaveStart, teeEncls] },
];

export const TEE_TABLES: readonly PanelDef[] = [teeEnclaveTable, teeNeighbours];

export const CONTAINERS: readonly Section[] = [
  { id: "container-processor", title: "Processor", panels: [containerCpu, containerThrottledShare, containerThrottledTime] },
  { id: "container-memory", title: "Memory", panels: [containerMemory, containerMemoryShare, containerEpc] },
  {
    id: "container-traffic",
    title: "Disks and network",
    panels: [containerFsReads, containerFsWrites, containerNetworkReceived, containerNetworkSent],
  },
  {
    id: "container-waiting",
    title: "Pressure and threads",
    panels: [containerPressureCpu, containerPressureMemory, containerPressureIo, containerThreads],
  },
];

export const CONTAINER_TABLE: TableDef = containers;

export const INFRASTRUCTURE: readonly Section[] = [
  {
    id: "node-processor",
    title: "Processor",
    panels: [nodeCpu, nodeLoad, nodePressure, nodeProcs, nodeContextSwitches, nodeForks],
  },
  {
    id: "node-memory",
    title: "Memory",
    panels: [nodeMemory, nodeNumaMemory, nodeSwap, nodePaging, nodePageFaults, nodeOomKills],
  },
  {
    id: "node-disks",
    title: "Disks",
    panels: [nodeDiskThroughput, nodeDiskOperations, nodeDiskUtilisation, nodeDiskLatency],
  },
  { id: "node-file-systems", title: "File systems", panels: [nodeFilesystems, nodeFilesystemUse] },
  { id: "node-network", title: "Network", panels: [nodeNetworkReceived, nodeNetworkSent, nodeNetworkErrors] },
];

export const OVERVIEW: readonly PanelDef[] = [cpuByWorkload, syscallsByWorkload, topSyscalls];

export const COST: readonly FigureDef[] = [selfShare, agentCpu, agentMemory, probeCost, scrapeDuration, seriesCount];

export const WORKLOADS: TableDef = workloads;

export const WINDOWS: BoxDef = windows;

export const STATUS: readonly TableDef[] = [collectors, build, probes, programs, maps];
