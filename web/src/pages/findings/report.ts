// SPDX-License-Identifier: Apache-2.0

// A report of the analysis in words. Pure. The sentences are those of
// internal/analysis/render, so that the page and `teescope analyze` say the same.
import type { Evidence, Finding, Gain, Problem, Report } from "../../api/findings";
import { type Chosen, passes } from "../../lib/filters";
import { onNode } from "../../lib/promql";
import { formatSpan } from "../../lib/time";
import { formatNumber, formatSeconds, formatShare, formatValue } from "../../lib/units";
import { listFirst } from "../../lib/words";

/** A figure with its unit. */
export function formatFigure(value: number, unit: string): string {
  switch (unit) {
    case "bytes":
      return formatValue(value, "bytes");
    case "bytes/s":
      return formatValue(value, "bytes_per_second");
    case "seconds":
      return formatSeconds(value);
    case "ratio":
      return formatShare(value);
    case "":
    case "1":
      return formatNumber(value);
  }
  return unit.startsWith("1/") ? `${formatNumber(value)}${unit.slice(1)}` : `${formatNumber(value)} ${unit}`;
}

/** The value of a piece of evidence, with its interval where there is one. */
export function figure({ value, unit, low, high }: Evidence): string {
  const interval = low === undefined || high === undefined ? "" : ` (${formatFigure(low, unit)} to ${formatFigure(high, unit)})`;
  return formatFigure(value, unit) + interval;
}

/** A factor with no more digits than an estimate has. */
function times(value: number): string {
  return value < 9.95 ? value.toFixed(1).replace(/\.0$/, "") : value.toFixed(0);
}

/** How much more the workload would do, as the interval that it is. */
export function gainText(gain: Gain | undefined): string {
  if (!gain) return "";
  const { low, high } = gain;
  if (high >= 1) return low < 0.005 ? `up to ${times(1 + high)} times as much` : `${times(1 + low)} to ${times(1 + high)} times as much`;
  if (high < 0.005) return "under 1 % more";
  if (low < 0.005) return `up to ${formatShare(high)} more`;
  const [from, to] = [formatShare(low), formatShare(high)];
  return from === to ? `about ${to} more` : `${from.replace(/ %$/, "")} to ${to} more`;
}

/** Whom a finding is about; where several machines are shown, on which of them. */
export function subject({ workload, instance }: { workload: string; instance: string }, several: boolean): string {
  if (workload === "") return instance === "" ? "the machine" : `the machine ${instance}`;
  return onNode(workload, several ? instance : undefined);
}

export function plural(n: number, one: string): string {
  return n === 1 ? `1 ${one}` : `${n} ${one}s`;
}

/** The findings that the filters let through: those of a whole machine are of all its workloads. */
export function chosen(findings: readonly Finding[], filters: Chosen): Finding[] {
  return findings.filter((f) => passes(filters, f.workload, f.instance));
}

/** The report in a sentence. */
export function verdictText(report: Report, shown: readonly Finding[], several: boolean): string {
  const looked = `${plural(report.workloads, "workload")} over ${formatSpan(report.window_seconds)}`;
  const [first] = shown;
  if (!first) {
    return report.workloads === 0
      ? `Not known yet: no workload could be judged over ${formatSpan(report.window_seconds)}.`
      : `Nothing found: looked at ${looked} with ${plural(report.checked.length, "rule")}.`;
  }
  const gain = gainText(first.gain);
  const worth = gain === "" ? `The first is at ${subject(first, several)}.` : `The most worthwhile is at ${subject(first, several)}: ${gain}.`;
  return `${plural(shown.length + report.left_out, "finding")} in ${looked}. ${worth}`;
}

const MOST_PROBLEMS = 8;

/** What was not looked at and why, reasons that are the same together. */
export function notJudged(report: Report, several: boolean): string[] {
  const byReason = new Map<string, string[]>();
  for (const { rule, reason } of report.skipped) byReason.set(reason, [...(byReason.get(reason) ?? []), rule]);
  const rules = [...byReason].sort(([a], [b]) => (a < b ? -1 : 1)).map(([reason, names]) => `${names.join(", ")}: ${reason}`);
  const short = report.problems.filter(isShort).map((p) => subject(p, several));
  if (short.length > 0) rules.push(`${listFirst(short, 8)}: there for less than half of the window, or samples are missing`);
  const grave = report.problems.filter((p) => p.kind !== "absent" && !isShort(p)).map((p) => problemText(p, several)); // the rules' reasons say what is absent
  const left = grave.length - MOST_PROBLEMS;
  return [...rules, ...(left > 1 ? [...grave.slice(0, MOST_PROBLEMS), `${left} more problems`] : grave)];
}

/** Whether a problem is that a workload was there too shortly. */
function isShort({ kind, workload }: Problem): boolean {
  return kind === "gap" && workload !== "";
}

function problemText(problem: Problem, several: boolean): string {
  const { workload, query, instance, error, rules } = problem;
  const about = workload !== "" ? `${subject(problem, several)}: ` : query !== "" ? `the query ${query}: ` : instance !== "" ? `${instance}: ` : "";
  return about + error + (rules.length > 0 ? ` (for ${listFirst(rules)})` : "");
}
