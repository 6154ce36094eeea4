// SPDX-License-Identifier: Apache-2.0

// Events as moments beside the values: alerts, findings, and starts, restarts and deployments of workloads. Pure;
// use-marks.ts queries the series.
import type { RangeSeries } from "../api/types";
import { type Chosen, passes } from "../lib/filters";
import { fillLegend } from "../lib/promql";
import { formatClock, formatMoment, type Interval } from "../lib/time";

/** The kinds, the most important first. Their first letters, which are on the flags, differ. */
export const MARK_KINDS = ["alert", "finding", "deployment", "restart", "start"] as const;
export type MarkKind = (typeof MARK_KINDS)[number];

export interface Mark {
  kind: MarkKind;
  /** Unix seconds. */
  at: number;
  text: string;
}

/** Maximum number of marks. The most important kinds and then the newest are kept. */
export const MOST_MARKS = 40;

/** Points of the queries over the shown interval. */
export const MARK_POINTS = 240;

/** The queries of marks, with the placeholders of panels. */
export const MARK_QUERIES = {
  findings: "max by (rule, workload) (teescope_finding_first_seen_timestamp_seconds{$nodes})",
  alerts: `max by (alertname, workload, instance) (ALERTS{alertstate="firing",severity!="none",$nodes})`,
  deployments: changes("deployment"),
  restarts: changes("restart"),
  // Restarts and deployments are queried above.
  containers:
    `max by (name, pod, container) (container_start_time_seconds{name!="",container!="POD",$nodes}` +
    ` unless on (instance, id) teescope_container_change_timestamp_seconds{$nodes} $containers)`,
  agents: `max by (instance) (process_start_time_seconds{$nodes} and on (instance, job) teescope_build_info{$nodes})`,
} as const;

function changes(what: string): string {
  const of = (family: string): string => `teescope_${family}_change_timestamp_seconds{change="${what}",$workloads}`;
  return `max by (instance, workload, name, pod, container, image) (${of("workload")} or ${of("container")})`;
}

export type MarkAnswers = Readonly<Record<keyof typeof MARK_QUERIES, readonly RangeSeries[]>>;

/** Returns the different values of a series of moments. */
function moments(series: RangeSeries): number[] {
  return [...new Set(series.values.map(([, value]) => value))].filter((value) => Number.isFinite(value) && value > 0);
}

/** Returns when a series appeared. Its first point does not count if it is the first of the interval. */
export function beginnings(series: RangeSeries, from: number, step: number): number[] {
  return series.values.flatMap(([time], i) => {
    const before = series.values[i - 1]?.[0];
    if (before === undefined) return time > from + 1.5 * step ? [time] : [];
    return time - before > 1.5 * step ? [time] : [];
  });
}

/** Returns the name of a container, or else of a workload. */
const subject = (s: RangeSeries): string => fillLegend("{{pod}}/{{container}}|{{pod}}|{{name}}|{{workload}}", s.metric);
const isContainer = (s: RangeSeries): boolean => (s.metric["name"] ?? "") !== "" || (s.metric["image"] ?? "") !== "";
/** Returns what changed, and on which machine. */
const subjectOnNode = (s: RangeSeries): string => `${isContainer(s) ? "Container " : ""}${subject(s)} on ${s.metric["instance"] ?? "?"}`;

function deployed(s: RangeSeries): string {
  const image = s.metric["image"] ?? "";
  return isContainer(s) ? `${subjectOnNode(s)} runs another image than before${image === "" ? "" : `: ${image}`}` : `${subjectOnNode(s)} runs another program file than before`;
}

export function toMarks(answers: MarkAnswers, chosen: Chosen, interval: Interval, step: number): Mark[] {
  const from = Math.floor(interval.from / step) * step;
  // The query filters by machine, and not every answer has it.
  const filters = { ...chosen, filters: (chosen.filters ?? []).filter((f) => f.kind !== "node") };
  const concerns = (s: RangeSeries): boolean => passes(filters, s.metric["workload"] ?? "", "");
  const of = (s: RangeSeries, word: string): string => ((s.metric["workload"] ?? "") === "" ? "" : ` ${word} ${s.metric["workload"] ?? ""}`);
  const marksOf = (kind: MarkKind, series: readonly RangeSeries[], when: (s: RangeSeries) => number[], text: (s: RangeSeries) => string): Mark[] =>
    series.flatMap((s) => when(s).map((at) => ({ kind, at, text: text(s) })));
  const all = [
    ...marksOf("alert", answers.alerts.filter(concerns), (s) => beginnings(s, from, step), (s) => `Alert ${s.metric["alertname"] ?? ""} fires${of(s, "for")}`),
    ...marksOf("finding", answers.findings.filter(concerns), moments, (s) => `Finding ${s.metric["rule"] ?? ""}${of(s, "at")}, first seen`),
    ...marksOf("deployment", answers.deployments, moments, deployed),
    ...marksOf("restart", answers.restarts, moments, (s) => `${subjectOnNode(s)} was restarted`),
    ...marksOf("start", answers.containers, moments, (s) => `Container ${subject(s)} started`),
    ...marksOf("start", answers.agents, moments, (s) => `teescope on ${s.metric["instance"] ?? "?"} started`),
  ];
  return pressing(all.filter((m) => m.at >= interval.from && m.at <= interval.to));
}

/** Returns the most important marks, sorted and without duplicates. */
function pressing(marks: readonly Mark[]): Mark[] {
  return [...new Map(marks.map((m) => [`${m.at} ${m.text}`, m])).values()]
    .sort((a, b) => MARK_KINDS.indexOf(a.kind) - MARK_KINDS.indexOf(b.kind) || b.at - a.at || a.text.localeCompare(b.text))
    .slice(0, MOST_MARKS);
}

/**
 * Returns the marks of two sides on the time of A, where B was `offset` seconds earlier. A mark of both sides is
 * listed once.
 */
export function pairMarks(a: readonly Mark[], b: readonly Mark[], offset: number): Mark[] {
  const same = (m: Mark, n: Mark): boolean => offset === 0 && m.at === n.at && m.text === n.text;
  const both = a.filter((m) => b.some((n) => same(m, n)));
  const of = (side: string, m: Mark): Mark => ({ ...m, text: `${side}: ${m.text}` });
  return pressing([
    ...both.map((m) => of("A and B", m)),
    ...a.filter((m) => !both.includes(m)).map((m) => of("A", m)),
    ...b
      .filter((n) => !both.some((m) => same(m, n)))
      .map((n) => of("B", { ...n, at: n.at + offset, text: offset === 0 ? n.text : `${n.text}, ${formatMoment(n.at)}` })),
  ]);
}

/** Returns the marks within some seconds of a moment. */
export function marksNear(marks: readonly Mark[], at: number, within: number): Mark[] {
  return marks.filter((m) => Math.abs(m.at - at) <= within);
}

/** Maximum number of marks in a line. The list of marks has all. */
const MOST_SAID = 3;

/** Formats marks as a line: time, kind and subject. */
export function sayMarks(marks: readonly Mark[]): string {
  const said = marks.slice(0, MOST_SAID).map((m) => `${formatClock(m.at)} ${m.text}`);
  return [...said, ...(marks.length > MOST_SAID ? [`${marks.length - MOST_SAID} more`] : [])].join(" · ");
}
