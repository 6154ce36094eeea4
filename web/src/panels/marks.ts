// SPDX-License-Identifier: Apache-2.0

// What happened beside the figures: findings, alerts and restarts, as moments.
// Pure; the series that they are read from are asked for in use-marks.ts.
import type { RangeSeries } from "../api/types";
import { fillLegend } from "../lib/promql";
import type { Interval } from "../lib/time";

export type MarkKind = "alert" | "finding" | "restart";

export interface Mark {
  kind: MarkKind;
  /** Unix seconds. */
  at: number;
  text: string;
}

/** More marks than this are no help: the most pressing kinds and then the newest are kept. */
export const MOST_MARKS = 40;

/** The queries that marks are read from. Their placeholders are those of panels. */
export const MARK_QUERIES = {
  findings: "max by (rule, workload) (teescope_finding_first_seen_timestamp_seconds{$nodes})",
  alerts: `max by (alertname, workload, instance) (ALERTS{alertstate="firing",$nodes})`,
  containers: `max by (name, pod, container) (container_start_time_seconds{name!="",container!="POD",$nodes} $containers)`,
  agents: `max by (instance) (process_start_time_seconds{job="teescope",$nodes})`,
} as const;

export type MarkAnswers = Readonly<Record<keyof typeof MARK_QUERIES, readonly RangeSeries[]>>;

/** What belongs to no workload concerns all of them. */
function concerns(series: RangeSeries, workloads: readonly string[]): boolean {
  const workload = series.metric["workload"] ?? "";
  return workload === "" || workloads.length === 0 || workloads.includes(workload);
}

/** The different values that a series of moments has had. */
function moments(series: RangeSeries): number[] {
  return [...new Set(series.values.map(([, value]) => value))].filter((value) => Number.isFinite(value) && value > 0);
}

/** When a series began to be there, after it was not: not its first point, if that is where one began to look. */
export function beginnings(series: RangeSeries, from: number, step: number): number[] {
  return series.values.flatMap(([time], i) => {
    const before = series.values[i - 1]?.[0];
    if (before === undefined) return time > from + 1.5 * step ? [time] : [];
    return time - before > 1.5 * step ? [time] : [];
  });
}

export function toMarks(answers: MarkAnswers, workloads: readonly string[], interval: Interval, step: number): Mark[] {
  const from = Math.floor(interval.from / step) * step;
  const of = (s: RangeSeries, word: string): string => ((s.metric["workload"] ?? "") === "" ? "" : ` ${word} ${s.metric["workload"] ?? ""}`);
  const alerts = answers.alerts.filter((s) => concerns(s, workloads)).flatMap((s) =>
    beginnings(s, from, step).map((at): Mark => ({ kind: "alert", at, text: `Alert ${s.metric["alertname"] ?? ""} fires${of(s, "for")}` })),
  );
  const findings = answers.findings.filter((s) => concerns(s, workloads)).flatMap((s) =>
    moments(s).map((at): Mark => ({ kind: "finding", at, text: `Finding ${s.metric["rule"] ?? ""}${of(s, "at")}, first seen` })),
  );
  const restarts = [
    ...answers.containers.flatMap((s) =>
      moments(s).map((at): Mark => ({
        kind: "restart",
        at,
        text: `Container ${fillLegend("{{pod}}/{{container}}|{{pod}}|{{name}}", s.metric)} started`,
      })),
    ),
    ...answers.agents.flatMap((s) =>
      moments(s).map((at): Mark => ({ kind: "restart", at, text: `teescope on ${s.metric["instance"] ?? "?"} started` })),
    ),
  ];
  const inside = (m: Mark): boolean => m.at >= interval.from && m.at <= interval.to;
  const newestFirst = (a: Mark, b: Mark): number => b.at - a.at || a.text.localeCompare(b.text);
  return [alerts, findings, restarts]
    .flatMap((kind) => kind.filter(inside).sort(newestFirst))
    .slice(0, MOST_MARKS);
}

/** The marks within some seconds of a moment. */
export function marksNear(marks: readonly Mark[], at: number, within: number): Mark[] {
  return marks.filter((m) => Math.abs(m.at - at) <= within);
}
