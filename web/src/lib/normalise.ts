// SPDX-License-Identifier: Apache-2.0

// What figures are divided by, so that workloads of different load can be
// compared: per 100 requests, as in Figure 11 of TEEMon (Middleware 2020).
// In the URL it is a short text: "cpu", "switch", "call:read", or a counter,
// such as "redis_commands_processed_total" or the same with matchers.
import { quote } from "./filters";
import type { Unit } from "./units";

export interface Divisor {
  /** PromQL of the rate, with the placeholders of lib/promql.ts. */
  expr: string;
  /** Figures are given for this many. */
  scale: number;
  /** "100 calls of read", to be written after "per". */
  noun: string;
}

/** A counter's name and, if wanted, matchers. No braces or "$" within: neither is needed to tell two servers apart. */
const SELECTOR = /^([a-zA-Z_:][\w:]*)(\{[^{}$]*\})?$/;
const CALL = /^call:(\w+)$/;

/** Reads the text; undefined is to divide by nothing, a string says what is wrong with it. */
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
  // Families of ours know the workload; those of applications have labels of their own.
  const own = matchers === undefined && /^(teescope|sgx_workload)_/.test(name);
  return { expr: `sum($rate(${name}${own ? "{$workloads}" : (matchers ?? "")}[$window]))`, scale: 100, noun: `100 of ${name.replace(/_total$/, "")}` };
}

/** The unit of a rate after dividing it by another rate; undefined for what is no rate, and stays as it is. */
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
