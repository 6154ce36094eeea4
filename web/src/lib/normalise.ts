// SPDX-License-Identifier: Apache-2.0

// What values are divided by, so that workloads under different load can be compared: per 100 requests, as in Figure
// 11 of TEEMon (Middleware 2020). The URL has it as a short text: "cpu", "switch", "call:read", or a counter with or
// without matchers, such as "redis_commands_processed_total".
import { quote } from "./filters";
import type { Unit } from "./units";

export interface Divisor {
  /** PromQL of the rate, with the placeholders of lib/promql.ts. */
  expr: string;
  /** Values are given for this many events. */
  scale: number;
  /** "100 calls of read", written after "per". */
  noun: string;
}

/**
 * A counter's name and optional matchers. Values with braces or "$" are refused, because matchers of servers need
 * neither.
 */
const SELECTOR = /^([a-zA-Z_:][\w:]*)(\{[^{}$]*\})?$/;
const CALL = /^call:(\w+)$/;

/** Parses the text. Returns undefined where nothing is divided, and a message for a wrong text. */
export function parseDivisor(per: string): Divisor | undefined | string {
  if (per === "") return undefined;
  if (per === "cpu") {
    return { expr: "sum($rate(teescope_cpu_seconds_total{$workloads}[$window]))", scale: 1, noun: "CPU second" };
  }
  if (per === "switch") {
    return { expr: "sum($rate(teescope_context_switches_total{$workloads}[$window]))", scale: 100, noun: "100 context switches" };
  }
  const call = CALL.exec(per)?.[1];
  if (call !== undefined) {
    return { expr: `sum($rate(teescope_syscalls_total{syscall=${quote(call)},$workloads}[$window]))`, scale: 100, noun: `100 calls of ${call}` };
  }
  if (per === "call:") return "Name the system call, such as read.";
  const [, name, matchers] = SELECTOR.exec(per) ?? [];
  if (name === undefined) return `“${per}” is not the name of a counter. Give a name, and matchers if they are needed: name{server="a"}.`;
  // Families of teescope have the label workload. Those of applications have labels of their own.
  const own = matchers === undefined && /^(teescope|sgx_workload)_/.test(name);
  return { expr: `sum($rate(${name}${own ? "{$workloads}" : (matchers ?? "")}[$window]))`, scale: 100, noun: `100 of ${name.replace(/_total$/, "")}` };
}

/** Returns the unit of a rate divided by another rate; undefined for a value that is not a rate and stays as it is. */
export function dividedUnit(unit: Unit): Unit | undefined {
  switch (unit) {
    case "per_second":
      return "count";
    case "bytes_per_second":
      return "bytes";
    case "cores":
    case "seconds_per_second":
      return "seconds";
    default:
      return undefined;
  }
}
