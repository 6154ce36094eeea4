// SPDX-License-Identifier: Apache-2.0

// Who a workload is: the questions, and their answers in words. Pure.
import type { InstantSample, Labels } from "../api/types";
import { join, quote } from "../lib/filters";
import { formatMoment, formatSpan } from "../lib/time";
import { formatValue } from "../lib/units";
import { listFirst } from "../lib/words";

/** How far back the first sight of a workload is looked for, and how closely: a young one is looked at closely. */
const SINCE_HOURS = 24;
const SINCE_STEP = 60;
const firstSight = (window: string): string => `min(min_over_time(timestamp(teescope_workload_info{$workloads})[${window}]))`;

/** In the order in which readIdentity wants their answers. */
export const IDENTITY_EXPRS = [
  "teescope_workload_info{$workloads}",
  "teescope_container_info{$workloads}",
  "sum(teescope_processes{$workloads})",
  "sum(teescope_threads{$workloads})",
  firstSight(`${SINCE_HOURS}h:${SINCE_STEP}s`),
  firstSight(`${2 * SINCE_STEP}s:1s`),
] as const;

/** The series that a workload has only where it has something of a TEE. */
export function teeSeries(workload: string, nodes: string): string {
  return `{__name__=~"sgx_workload_.+|teescope_(enclave_transitions|enclave_exits_estimated|ecalls|ocalls)_total",${join(`workload=${quote(workload)}`, nodes)}}`;
}

interface Fact {
  label: string;
  value: string;
}

/** What is known of a workload at a moment; what is not known has no line. */
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

/** Since when; what goes on for longer than was looked at is said to. */
export function sinceText(first: number | undefined, at: number): string {
  if (first === undefined) return "";
  const length = at - first;
  if (length > SINCE_HOURS * 3600 - 2 * SINCE_STEP) return `for more than ${formatSpan(SINCE_HOURS * 3600)}`;
  return `since ${formatMoment(first)} (${formatSpan(length)})`;
}
