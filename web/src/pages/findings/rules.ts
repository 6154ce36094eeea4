// SPDX-License-Identifier: Apache-2.0

// What stands out: plain rules over the newest minute. Each says what was
// counted and no more; none claims a cause that was not measured. Thresholds
// only keep trifles out. To add a rule: write a function, add it to RULES.
import { formatShare, formatValue } from "../../lib/units";
import type { PageId } from "../../lib/url";
import { groupReasons, listFirst, listWords } from "../../lib/words";
import { type Facts, greatest, sumOf } from "./facts";

export type Severity = "bad" | "warn" | "note";

export interface Finding {
  id: string;
  severity: Severity;
  title: string;
  detail: string;
  /** The workload it is about, to filter by. */
  workload?: string;
  /** The page that shows it, where that is not System. */
  page?: PageId;
}

export type Rule = (facts: Facts) => Finding[];

const rate = (value: number): string => formatValue(value, "per_second");

/** Names that stand for many programs: no finding is about them. */
const COLLECTIVE = new Set(["kernel", "idle", "other"]);

/** Calls that ask for the time, a lock or an identity, and those that move data. */
const CHATTER = [
  "clock_gettime", "clock_nanosleep", "gettimeofday", "time", "futex", "futex_wait", "futex_wake",
  "sched_yield", "getpid", "gettid", "getppid", "getuid",
];
const TRANSFER = [
  "read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "preadv2", "pwritev2",
  "recvfrom", "sendto", "recvmsg", "sendmsg", "recvmmsg", "sendmmsg", "sendfile", "splice",
];

/** Fewer calls or switches per second than this are not worth a sentence. */
const LEAST_RATE = 500;
const LEAST_INVOLUNTARY_SHARE = 0.4;
const LEAST_THROTTLED_SHARE = 0.05;
const LEAST_MEMORY_SHARE = 0.9;

const targetsDown: Rule = ({ targetsDown: down }) =>
  down.map((instance) => ({
    id: `down-${instance}`,
    severity: "bad",
    title: `${instance} does not answer scrapes`,
    detail: "Nothing on this page is about that machine until it does. The status page has the error.",
  }));

const collectorsFailed: Rule = ({ collectorsFailed: failed }) =>
  failed.map((collector) => ({
    id: `collector-${collector}`,
    severity: "bad",
    title: `The collector “${collector}” failed at the last scrape`,
    detail: "Its metrics are absent, not zero. The log of teescope says why.",
  }));

const probesMissing: Rule = ({ probes }) => {
  const { missing, attached } = probes;
  if (missing.length === 0) return [];
  const reasons = groupReasons(missing.map((m) => ({ name: m.probe, reason: m.reason })));
  return [
    {
      id: "probes",
      severity: "note",
      title: `${missing.length} of ${attached + missing.length} probes are not attached`,
      detail: `${reasons}. What they would count is absent from the charts.`,
    },
  ];
};

/** What each level of watching leaves out, in the words of who misses it. */
const LEVEL_WORDS: Readonly<Record<string, string>> = {
  untimed: "the time of system calls is not measured",
  sampled: "frequent events are sampled: rates are estimates, short bursts may be missed",
  totals: "frequent events are sampled and watched processes are not broken down",
  off: "system calls and other frequent events are not counted",
};

const overBudget: Rule = ({ levels }) =>
  [...levels].map(([instance, level]) => ({
    id: `level-${instance}`,
    severity: level === "off" ? "warn" : "note",
    title: `${instance} is too busy to watch everything within the budget`,
    detail: `So that watching stays cheap, ${LEVEL_WORDS[level] ?? level}. --overhead.budget=100% counts every event, and costs more.`,
    page: "status",
  }));

const folded: Rule = ({ syscalls, cpu }) => {
  const calls = sumOf(syscalls.get("other"));
  const cores = cpu.get("other") ?? 0;
  if (calls === 0 && cores === 0) return [];
  return [
    {
      id: "folded",
      severity: "note",
      title: "Some activity is counted together as “other”",
      detail: `${rate(calls)} of system calls and ${formatValue(cores, "cores")} CPU cores belong to workloads without a row of their own. Totals are complete; --workloads.max gives more rows.`,
    },
  ];
};

function individual<T>(map: ReadonlyMap<string, T>): [string, T][] {
  return [...map].filter(([name]) => !COLLECTIVE.has(name));
}

const topSyscall: Rule = ({ syscalls }) => {
  const totals = new Map(individual(syscalls).map(([name, calls]) => [name, sumOf(calls)]));
  const busiest = greatest(totals);
  if (!busiest || busiest[1] < LEAST_RATE) return [];
  const [workload, total] = busiest;
  const calls = syscalls.get(workload);
  const top = calls && greatest(calls);
  if (!top) return [];
  const all = [...syscalls.values()].reduce((sum, byName) => sum + sumOf(byName), 0);
  return [
    {
      id: "top-syscall",
      severity: "note",
      title: `${workload} makes the most system calls: ${rate(total)}`,
      detail: `That is ${formatShare(total / all)} of all that are shown. Its commonest is ${top[0]}: ${rate(top[1])}, ${formatShare(top[1] / total)} of its calls.`,
      workload,
    },
  ];
};

const chatter: Rule = ({ syscalls }) => {
  const talkers = individual(syscalls)
    .map(([workload, calls]) => {
      const talk = new Map(CHATTER.map((name) => [name, calls.get(name) ?? 0]));
      const transfer = TRANSFER.reduce((total, name) => total + (calls.get(name) ?? 0), 0);
      return { workload, talk: sumOf(talk), top: greatest(talk)?.[0] ?? "", transfer };
    })
    .filter(({ talk, transfer }) => talk >= LEAST_RATE && talk > transfer)
    .sort((a, b) => b.talk - a.talk);
  const [first] = talkers;
  if (!first) return [];
  const parts = talkers.map((t) => `${t.workload} ${rate(t.talk)}, mostly ${t.top}, against ${rate(t.transfer)} of reads and writes`);
  const names = listWords(talkers.map((t) => t.workload));
  const one = talkers.length === 1;
  return [
    {
      id: "chatter",
      severity: "warn",
      title: `${names} ${one ? "asks" : "ask"} for time, locks or identity more often than ${one ? "it moves" : "they move"} data`,
      detail: `${parts.join("; ")}. Inside an enclave, calls that leave it cost more than they do here.`,
      workload: first.workload,
    },
  ];
};

const pushedAside: Rule = ({ switches }) => {
  const pushed = individual(switches)
    .map(([workload, kinds]) => ({ workload, total: sumOf(kinds), forced: kinds.get("involuntary") ?? 0 }))
    .filter(({ total, forced }) => total >= LEAST_RATE && forced / total >= LEAST_INVOLUNTARY_SHARE)
    .sort((a, b) => b.forced - a.forced);
  const [first] = pushed;
  if (!first) return [];
  const parts = pushed.map((p) => `${formatShare(p.forced / p.total)} of the ${rate(p.total)} context switches of ${p.workload}`);
  return [
    {
      id: "involuntary",
      severity: "warn",
      title: `${listWords(pushed.map((p) => p.workload))} ${pushed.length === 1 ? "is" : "are"} often taken off the processor`,
      detail: `Involuntary are ${listWords(parts)}: others compete for the same processors.`,
      workload: first.workload,
    },
  ];
};

const throttled: Rule = ({ throttled: shares }) => {
  const held = [...shares].filter(([, share]) => share >= LEAST_THROTTLED_SHARE).sort(([, a], [, b]) => b - a);
  if (held.length === 0) return [];
  const parts = held.map(([name, share]) => `of ${name} in ${formatShare(share)} of its periods`);
  return [
    {
      id: "throttled",
      severity: "warn",
      title: `${listFirst(held.map(([name]) => name))} ${held.length === 1 ? "is" : "are"} throttled`,
      detail: `The CPU quota ran out: ${listFirst(parts)}. Threads then wait for the next period, however idle the machine is.`,
      page: "containers",
    },
  ];
};

const nearLimit: Rule = ({ memory }) => {
  const near = [...memory]
    .map(([name, { used, limit }]) => ({ name, used, limit, share: used / limit }))
    .filter(({ share }) => share >= LEAST_MEMORY_SHARE)
    .sort((a, b) => b.share - a.share);
  if (near.length === 0) return [];
  const parts = near.map((n) => `${formatShare(n.share)} in ${n.name}, ${formatValue(n.used, "bytes")} of ${formatValue(n.limit, "bytes")}`);
  return [
    {
      id: "memory-limit",
      severity: "warn",
      title: `${listFirst(near.map((n) => n.name))} ${near.length === 1 ? "is" : "are"} near the memory limit`,
      detail: `The working set takes ${listFirst(parts)}. At the limit the kernel takes pages back, and kills if that is not enough.`,
      page: "containers",
    },
  ];
};

export const RULES: readonly Rule[] = [
  targetsDown,
  collectorsFailed,
  nearLimit,
  throttled,
  chatter,
  pushedAside,
  topSyscall,
  probesMissing,
  overBudget,
  folded,
];

const ORDER: readonly Severity[] = ["bad", "warn", "note"];

/** All that stands out, gravest first. */
export function findAll(facts: Facts): Finding[] {
  return RULES.flatMap((rule) => rule(facts)).sort((a, b) => ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity));
}
