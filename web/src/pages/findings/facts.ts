// SPDX-License-Identifier: Apache-2.0

// The questions behind the verdict of the overview, and their answers in a form
// that rules can read. All rates are means of the newest minute.
import type { InstantSample } from "../../api/types";
import { fillLegend } from "../../lib/promql";

export interface Facts {
  /** TEE name to whether it is available. */
  tees: ReadonlyMap<string, boolean>;
  /** Workload to system call to calls per second. */
  syscalls: ReadonlyMap<string, ReadonlyMap<string, number>>;
  /** Workload to kind (voluntary, involuntary) to switches per second. */
  switches: ReadonlyMap<string, ReadonlyMap<string, number>>;
  /** Workload to processors kept busy. */
  cpu: ReadonlyMap<string, number>;
  collectorsFailed: readonly string[];
  probes: { attached: number; missing: readonly { probe: string; reason: string }[] };
  targetsDown: readonly string[];
  /** Workloads reported. */
  workloads: ReadonlySet<string>;
  /** Container to the share of CPU periods in which its quota ran out. */
  throttled: ReadonlyMap<string, number>;
  /** Container to its working set and the limit of it, bytes; only those with a limit. */
  memory: ReadonlyMap<string, { used: number; limit: number }>;
  /** How much is watched where that is less than was asked for: instance to level. */
  levels: ReadonlyMap<string, string>;
  /** What teescope itself uses. */
  agent: { cpu?: number | undefined; memory?: number | undefined };
}

const RATE_OF = (family: string, by: string): string => `sum by (${by}) ($rate(${family}{$workloads}[$window]))`;

const OF_CONTAINERS = (inner: string): string => `sum by (name, pod, container) (${inner} $containers)`;

/** The expressions, in the order in which readFacts wants their answers. */
export const FACT_EXPRS = [
  "max by (tee) (teescope_tee_available)",
  RATE_OF("teescope_syscalls_total", "workload, syscall"),
  RATE_OF("teescope_context_switches_total", "workload, kind"),
  RATE_OF("teescope_cpu_seconds_total", "workload"),
  "teescope_collector_success == 0",
  "max by (probe, reason) (teescope_probe_attached)",
  "up == 0",
  "teescope_workload_info{$workloads}",
  'sum($rate(process_cpu_seconds_total{job="teescope"}[$window]))',
  'sum(process_resident_memory_bytes{job="teescope"})',
  `${OF_CONTAINERS("$rate(container_cpu_cfs_throttled_periods_total{name!=\"\"}[$window])")} / ${OF_CONTAINERS("$rate(container_cpu_cfs_periods_total{name!=\"\"}[$window])")}`,
  OF_CONTAINERS('container_memory_working_set_bytes{name!=""}'),
  OF_CONTAINERS('container_spec_memory_limit_bytes{name!=""} > 0'),
  'teescope_self_level{level!="full"} == 1',
] as const;

function nested(samples: readonly InstantSample[], label: string): Map<string, Map<string, number>> {
  const out = new Map<string, Map<string, number>>();
  for (const { metric, value } of samples) {
    const workload = metric["workload"] ?? "";
    const inner = out.get(workload) ?? new Map<string, number>();
    inner.set(metric[label] ?? "", value[1]);
    out.set(workload, inner);
  }
  return out;
}

/** Values by the name of the container, as the page Containers writes it. */
function byContainer(samples: readonly InstantSample[]): Map<string, number> {
  return new Map(samples.map((s) => [fillLegend("{{pod}}/{{container}}|{{name}}", s.metric), s.value[1]]));
}

function labels(samples: readonly InstantSample[], label: string): string[] {
  return samples.map((s) => s.metric[label] ?? "").sort();
}

export function readFacts(answers: readonly (readonly InstantSample[])[]): Facts {
  const [tees = [], syscalls = [], switches = [], cpu = [], failed = [], probes = [], down = [], info = [], agentCpu, agentMemory, throttled = [], used = [], limits = [], levels = []] =
    answers;
  const limitOf = byContainer(limits);
  const missing = probes.filter((s) => s.value[1] === 0);
  return {
    tees: new Map(tees.map((s) => [s.metric["tee"] ?? "", s.value[1] > 0])),
    syscalls: nested(syscalls, "syscall"),
    switches: nested(switches, "kind"),
    cpu: new Map(cpu.map((s) => [s.metric["workload"] ?? "", s.value[1]])),
    collectorsFailed: labels(failed, "collector"),
    probes: {
      attached: probes.length - missing.length,
      missing: missing.map((s) => ({ probe: s.metric["probe"] ?? "", reason: s.metric["reason"] ?? "" })),
    },
    targetsDown: labels(down, "instance"),
    workloads: new Set(labels(info, "workload")),
    throttled: byContainer(throttled),
    memory: new Map(
      [...byContainer(used)].flatMap(([name, bytes]) => {
        const limit = limitOf.get(name);
        return limit === undefined ? [] : [[name, { used: bytes, limit }] as const];
      }),
    ),
    levels: new Map(levels.map((s) => [s.metric["instance"] ?? "", s.metric["level"] ?? ""])),
    agent: { cpu: agentCpu?.[0]?.value[1], memory: agentMemory?.[0]?.value[1] },
  };
}

export function sumOf(values: ReadonlyMap<string, number> | undefined): number {
  let sum = 0;
  for (const value of values?.values() ?? []) sum += value;
  return sum;
}

/** The entry with the greatest value. */
export function greatest(values: ReadonlyMap<string, number>): [string, number] | undefined {
  let best: [string, number] | undefined;
  for (const entry of values) if (!best || entry[1] > best[1]) best = entry;
  return best;
}
