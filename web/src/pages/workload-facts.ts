// SPDX-License-Identifier: Apache-2.0

// The identity of a workload: queries, and their answers as text; and where more can be measured of it. Pure.
import type { Control } from "../api/control";
import type { InstantSample, Labels } from "../api/types";
import { join, quote } from "../lib/filters";
import { formatMoment, formatSpan } from "../lib/time";
import { formatValue } from "../lib/units";
import { listFirst, shellWord } from "../lib/words";

/** How far back the start of a workload is searched, and at which step. A recent start is searched more finely. */
const SINCE_HOURS = 24;
const SINCE_STEP = 60;
const firstSight = (window: string): string => `min(min_over_time(timestamp(teescope_workload_info{$workloads})[${window}]))`;

/** The expressions, in the order of readIdentity's arguments. */
export const IDENTITY_EXPRS = [
  "teescope_workload_info{$workloads}",
  "teescope_container_info{$workloads}",
  "sum(teescope_processes{$workloads})",
  "sum(teescope_threads{$workloads})",
  firstSight(`${SINCE_HOURS}h:${SINCE_STEP}s`),
  firstSight(`${2 * SINCE_STEP}s:1s`),
] as const;

/** A selector for series that only workloads in a TEE have. */
export function teeSeries(workload: string, nodes: string): string {
  return `{__name__=~"sgx_workload_.+|teescope_(enclave_transitions|enclave_exits_estimated|ecalls|ocalls)_total",${join(`workload=${quote(workload)}`, nodes)}}`;
}

interface Fact {
  label: string;
  value: string;
}

/** Returns the known facts about a workload at a moment. */
export function readIdentity(answers: readonly (readonly InstantSample[])[], at: number): Fact[] {
  const [info = [], containers = [], processes, threads, ...sights] = answers;
  const since = sights.flatMap((samples) => samples.map((s) => s.value[1]));
  const all = (samples: readonly InstantSample[], read: (labels: Labels) => string | undefined): string =>
    listFirst([...new Set(samples.map((s) => read(s.metric) ?? "").filter((text) => text !== ""))].sort());
  const figure = (samples: readonly InstantSample[] | undefined): string =>
    samples?.[0] ? formatValue(samples[0].value[1], "count") : "";
  const facts: Fact[] = [
    { label: "Kind", value: all(info, (l) => l["kind"]) },
    { label: "TEE", value: all(info, (l) => l["tee"]) },
    { label: "Runtime", value: all(info, (l) => l["runtime"]) },
    { label: "Container", value: all(containers, (l) => l["container"] || l["name"]) || all(info, (l) => l["container"]) },
    { label: "Image", value: all(containers, (l) => l["image"]) },
    { label: "Pod", value: all([...info, ...containers], podOf) },
    { label: "Processes", value: figure(processes) },
    { label: "Threads", value: figure(threads) },
    { label: "Seen", value: sinceText(since.length > 0 ? Math.min(...since) : undefined, at) },
    { label: "Machine", value: all(info, (l) => l["instance"]) },
  ];
  return facts.filter(({ value }) => value !== "");
}

function podOf({ namespace = "", pod = "" }: Labels): string {
  return namespace !== "" && pod !== "" ? `${namespace}/${pod}` : pod;
}

/** Formats the start of a workload. The text says so if it ran for longer than the search. */
export function sinceText(first: number | undefined, at: number): string {
  if (first === undefined) return "";
  const length = at - first;
  if (length > SINCE_HOURS * 3600 - 2 * SINCE_STEP) return `for more than ${formatSpan(SINCE_HOURS * 3600)}`;
  return `since ${formatMoment(first)} (${formatSpan(length)})`;
}

/** Says why nothing can be switched on here for a workload of a machine, and what to do. It is empty if something can. */
export function switchesRefusal(control: Control | null, name: string, node: string): string {
  const there = `On the machine itself: teescope control watch ${shellWord(`workload=${name}`)} --for 10m`;
  if (control === null) return `This server runs no agent, so it switches nothing on. ${there}`;
  if (node !== "" && control.machine !== "" && node !== control.machine) {
    return `The workload runs on ${node}, and this server controls only its own agent, on ${control.machine}. ${there}`;
  }
  if (!control.allowed) return "The agent allows no changes. Start it with --control.enabled to allow them.";
  return "";
}

/**
 * Returns the change that switches something on for the shown workloads and machines, or undefined if this agent cannot: it
 * allows no changes, watches another machine, or a watch has no single workload.
 */
export function switchable(
  control: Control, kind: "timing" | "watch", workloads: readonly string[], nodes: readonly string[], seconds: number,
): { kind: string; rule?: string; seconds: number } | undefined {
  const [name, second] = workloads;
  const elsewhere = nodes.length > 1 || (control.machine !== "" && nodes[0] !== undefined && nodes[0] !== control.machine);
  if (!control.allowed || elsewhere) return undefined;
  const length = Math.min(seconds, control.max_seconds);
  if (kind === "timing") return { kind, seconds: length };
  return name === undefined || second !== undefined ? undefined : { kind, rule: `workload=${name}`, seconds: length };
}
