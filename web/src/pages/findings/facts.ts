// SPDX-License-Identifier: Apache-2.0

// The queries of the overview's verdict, and their answers in a form for sentences. All rates are means over the last
// minute. They run before any chart, so they are few.
import type { InstantSample } from "../../api/types";
import { seriesName } from "../../lib/promql";

export interface Facts {
  /** Availability by name of the TEE. */
  tees: ReadonlyMap<string, boolean>;
  /** System calls per second by workload, with its machine where there are several. The idle task is omitted. */
  syscalls: ReadonlyMap<string, number>;
  /** Busy processors by workload. */
  cpu: ReadonlyMap<string, number>;
  /** The rates of the workload "other". */
  folded: { syscalls: number; cpu: number };
  collectorsFailed: readonly string[];
  probes: { attached: number; missing: readonly { probe: string; reason: string }[] };
  targetsDown: readonly string[];
  /** Reported workloads, named in the same way. */
  workloads: ReadonlySet<string>;
  /** Level by instance, where it is below the requested one. */
  levels: ReadonlyMap<string, string>;
  /** Events a second that the kernel has left out, by program of the agent. Counts of these programs are not exact. */
  missed: ReadonlyMap<string, number>;
  /** Resources that teescope itself uses. */
  agent: { cpu?: number | undefined; memory?: number | undefined };
}

const RATE_OF = (family: string): string => `sum by (workload, instance) ($rate(${family}{$workloads}[$window]))`;

/** The expressions, in the order of readFacts' arguments. The first one has all states. */
export const FACT_EXPRS = [
  'teescope_tee_available{$nodes} or teescope_probe_attached{$nodes} or teescope_collector_success{$nodes} == 0 or up{$nodes} == 0 or teescope_self_level{level!="full",$nodes} == 1',
  RATE_OF("teescope_syscalls_total"),
  RATE_OF("teescope_cpu_seconds_total"),
  "teescope_workload_info{$workloads}",
  'sum($rate(process_cpu_seconds_total{$nodes}[$window]) and on (instance, job) teescope_build_info{$nodes})',
  'sum(process_resident_memory_bytes{$nodes} and on (instance, job) teescope_build_info{$nodes})',
  "sum by (program) ($rate(teescope_bpf_program_missed_runs_total{$nodes}[$window])) > 0",
] as const;

/** Adds the samples by name. */
function byName(samples: readonly InstantSample[], name: (s: InstantSample) => string): Map<string, number> {
  const sums = new Map<string, number>();
  for (const s of samples) sums.set(name(s), (sums.get(name(s)) ?? 0) + s.value[1]);
  return sums;
}

const workloadOf = ({ metric }: InstantSample): string => metric["workload"] ?? "";

/**
 * Counts attached probes and lists missing ones by name and reason. A probe that is attached anywhere is not missing.
 */
function probesOf(samples: readonly InstantSample[]): Facts["probes"] {
  const attached = new Map<string, { probe: string; reason: string; there: boolean }>();
  for (const { metric, value } of samples) {
    const entry = { probe: metric["probe"] ?? "", reason: metric["reason"] ?? "", there: value[1] > 0 };
    const key = `${entry.probe}\n${entry.reason}`;
    if (entry.there || !attached.has(key)) attached.set(key, entry);
  }
  const all = [...attached.values()];
  const missing = all.filter((entry) => !entry.there);
  return { attached: all.length - missing.length, missing: missing.map(({ probe, reason }) => ({ probe, reason })) };
}

export function readFacts(answers: readonly (readonly InstantSample[])[], several: boolean): Facts {
  const [states = [], syscalls = [], cpu = [], info = [], agentCpu, agentMemory, missed = []] = answers;
  const shown = (s: InstantSample): string => seriesName("{{workload}}", s.metric, several);
  const busy = (samples: readonly InstantSample[]): Map<string, number> => byName(samples.filter((s) => workloadOf(s) !== "idle"), shown);
  const other = (samples: readonly InstantSample[]): number => byName(samples, workloadOf).get("other") ?? 0;
  const named = (name: string): InstantSample[] => states.filter((s) => s.metric["__name__"] === name);
  const labels = (samples: readonly InstantSample[], label: string): string[] =>
    [...new Set(samples.map((s) => s.metric[label] ?? ""))].sort();
  const tees = new Map<string, boolean>();
  for (const { metric, value } of named("teescope_tee_available")) {
    const tee = metric["tee"] ?? "";
    tees.set(tee, value[1] > 0 || tees.get(tee) === true);
  }
  return {
    tees,
    syscalls: busy(syscalls),
    cpu: busy(cpu),
    folded: { syscalls: other(syscalls), cpu: other(cpu) },
    collectorsFailed: labels(named("teescope_collector_success"), "collector"),
    probes: probesOf(named("teescope_probe_attached")),
    targetsDown: labels(named("up"), "instance"),
    workloads: new Set(info.map(shown)),
    levels: new Map(named("teescope_self_level").map((s) => [s.metric["instance"] ?? "", s.metric["level"] ?? ""])),
    missed: byName(missed, ({ metric }) => metric["program"] ?? ""),
    agent: { cpu: agentCpu?.[0]?.value[1], memory: agentMemory?.[0]?.value[1] },
  };
}

export function sumOf(values: ReadonlyMap<string, number>): number {
  let sum = 0;
  for (const value of values.values()) sum += value;
  return sum;
}

/** Returns the entry with the greatest value. */
export function greatest(values: ReadonlyMap<string, number>): [string, number] | undefined {
  let best: [string, number] | undefined;
  for (const entry of values) if (!best || entry[1] > best[1]) best = entry;
  return best;
}
