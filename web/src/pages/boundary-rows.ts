// SPDX-License-Identifier: Apache-2.0

// Rows about the threads of a workload and its calls at the boundary of its enclaves, from two answers of the agent.
import type { Crossings, Pair, Threads } from "../api/threads";

/** A thread, or a process with the threads that have ended. Rates are per second; undefined if not measured. */
interface CrossingRow {
  id: string;
  name: string;
  eenter: number | undefined;
  eexit: number | undefined;
  aex: number | undefined;
  source: string;
}

function rate(before: number | undefined, after: number | undefined, seconds: number): number | undefined {
  return before === undefined || after === undefined || after < before || seconds <= 0 ? undefined : (after - before) / seconds;
}

function row(id: string, name: string, before: Crossings | undefined, after: Crossings, seconds: number): CrossingRow {
  const old = before?.source === after.source ? before : undefined;
  return {
    id,
    name,
    eenter: rate(old?.eenter, after.eenter, seconds),
    eexit: rate(old?.eexit, after.eexit, seconds),
    aex: rate(old?.aex, after.aex, seconds),
    source: after.source,
  };
}

/** Returns rows of processes and of threads that cross, those that enter most often first. */
export function crossingRows(before: Threads | undefined, after: Threads): CrossingRow[] {
  const seconds = before ? (Date.parse(after.time) - Date.parse(before.time)) / 1000 : 0;
  const processes = after.processes.map((p) =>
    row(`process ${p.pid}`, `all of process ${p.pid}`, before?.processes.find((b) => b.pid === p.pid), p, seconds),
  );
  const threads = after.list.flatMap((t) => {
    const old = before?.list.find((b) => b.tid === t.tid && b.started_seconds === t.started_seconds);
    return t.crossings ? [row(`thread ${t.tid}`, `${t.name} (${t.tid})`, old?.crossings, t.crossings, seconds)] : [];
  });
  threads.sort((a, b) => (b.eenter ?? -1) - (a.eenter ?? -1));
  return [...processes, ...threads];
}

const KINDS: Readonly<Record<string, (p: Pair) => string>> = {
  ocall_in_ecall: (p) => `${p.to} after the beginning of ${p.from}`,
  last_in_ecall: (p) => `${p.to} before the end of ${p.from}`,
  next_ocall: (p) => `${p.from}, then ${p.to}`,
  next_ecall: (p) => `${p.from}, then ${p.to}`,
  ocall: (p) => `${p.from}, an OCALL by itself`,
  ecall: (p) => `${p.from}, an ECALL by itself`,
};

const ADVICE: Readonly<Record<string, string>> = {
  move_before: "make the OCALL before the ECALL",
  move_behind: "make the OCALL after the ECALL",
  batch: "make one call for several (batch)",
  merge: "make one call of both (merge)",
  move_in: "do it inside the enclave",
};

/** Describes the calls of a pair, and what may help. Words of a newer agent are shown as they are. */
export function describePair(p: Pair): { what: string; advice: string } {
  return { what: KINDS[p.kind]?.(p) ?? `${p.kind}: ${p.from}, ${p.to}`, advice: ADVICE[p.advice] ?? p.advice };
}
