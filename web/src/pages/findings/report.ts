// SPDX-License-Identifier: Apache-2.0

// Formats a report of the analysis as text. Pure. `teescope analyze` uses the same file of phrases.
import phrases from "../../../../internal/analysis/render/phrases.json";
import { type Cause, type Evidence, type Finding, type Gain, type Limit, type Problem, type Report, type Saving, SEVERITIES } from "../../api/findings";
import { type Chosen, passes } from "../../lib/filters";
import { onNode } from "../../lib/promql";
import { formatMoment, formatSpan, zoneName } from "../../lib/time";
import { formatNumber, formatSeconds, formatShare, formatValue } from "../../lib/units";
import { listFirst } from "../../lib/words";

/** Returns a phrase with its braces replaced by these values. */
export function say(phrase: keyof typeof phrases, values: Readonly<Record<string, string>> = {}): string {
  return phrases[phrase].replace(/\{(\w+)\}/g, (_, name: string) => values[name] ?? "");
}

/** Formats a value with its unit. */
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

/** Formats the value of a piece of evidence, with its interval if there is one. */
export function figure({ value, unit, low, high }: Evidence): string {
  const interval = low === undefined || high === undefined ? "" : say("interval", { low: formatFigure(low, unit), high: formatFigure(high, unit) });
  return formatFigure(value, unit) + interval;
}

/** Formats a factor with as few digits as an estimate has. */
function times(value: number): string {
  return value < 9.95 ? value.toFixed(1).replace(/\.0$/, "") : value.toFixed(0);
}

/** The largest ratio of the ends of an estimate that is shown as a range. For a wider one, only the lower end is shown. */
const MOST_SPREAD = 3;

/** Formats the additional throughput as an interval. */
export function gainText(gain: Pick<Gain, "low" | "high"> | undefined): string {
  if (!gain) return "";
  const { low, high } = gain;
  if (high < 0.005) return say("gain_small");
  if (low < 0.005) return high >= 1 ? say("gain_up_to_times", { high: times(1 + high) }) : say("gain_up_to", { high: formatShare(high) });
  if (high > MOST_SPREAD * low) return say("gain_at_least", { low: formatShare(low) });
  if (high >= 1) return say("gain_times", { low: times(1 + low), high: times(1 + high) });
  const [from, to] = [formatShare(low), formatShare(high)];
  return from === to ? say("gain_about", { high: to }) : say("gain_between", { low: from.replace(/ %$/, ""), high: to });
}

/** The least CPU time, in cores, that is shown. A lower end below it is not a promise. */
const LEAST_CORES = 0.001;

/** Formats the CPU time that is saved as an interval. */
export function savingText(saving: Pick<Saving, "low" | "high"> | undefined): string {
  if (!saving) return "";
  const [low, high] = [formatNumber(saving.low), formatNumber(saving.high)];
  if (saving.high < LEAST_CORES) return say("saving_small");
  if (saving.low < LEAST_CORES) return say("saving_up_to", { high });
  if (saving.high > MOST_SPREAD * saving.low) return say("saving_at_least", { low });
  return low === high ? say("saving_about", { high }) : say("saving_between", { low, high });
}

/** Formats what removing the cause is worth: cores, and throughput where something limits it. */
export function worthText({ saving, gain }: Pick<Finding, "saving" | "gain">): string {
  return [savingText(saving), gain && say("throughput", { gain: gainText(gain) })].filter(Boolean).join("; ");
}

/** Returns the limit of the throughput, or that no measurement shows one. Empty without an estimate. */
export function limitText({ saving, gain }: Pick<Finding, "saving" | "gain">): string {
  return gain ? say("limited", { limit: gain.limit }) : saving ? say("no_limit") : "";
}

/** Returns the assumptions of both estimates, each once. */
export function assumptions({ saving, gain }: Pick<Finding, "saving" | "gain">): string[] {
  return [...new Set([...(saving?.assumptions ?? []), ...(gain?.assumptions ?? [])])];
}

/** Returns how the estimates of a finding combine with the workload's other findings. */
export function together({ adds, overlaps }: Pick<Finding, "adds" | "overlaps">): string[] {
  const parts: [keyof typeof phrases, string[]][] = [
    ["adds", adds],
    ["left_part", overlaps.filter((rule) => adds.includes(rule))],
    ["same_time", overlaps.filter((rule) => !adds.includes(rule))],
  ];
  return parts.filter(([, rules]) => rules.length > 0).map(([phrase, rules]) => say(phrase, { rules: rules.join(", ") }));
}

/** Describes events shortly before a finding began, and its first figure on earlier days. */
export function preceding({ preceded, earlier }: Pick<Finding, "preceded" | "earlier">): string[] {
  return [
    ...preceded.map(({ at, seconds, what, chance }) => {
      const time = Date.parse(at) / 1000;
      return say("preceded", { ago: formatSpan(seconds), what, time: `${formatMoment(time)} ${zoneName(time)}`, share: formatShare(chance) });
    }),
    ...earlier.map(({ ago_seconds, name, value, unit }) => say("earlier", { ago: formatSpan(ago_seconds), name, value: formatFigure(value, unit) })),
  ];
}

const THREAD_PHRASES = { cpu: "threads_cpu", run_queue_wait: "threads_run_queue_wait", voluntary_switches: "threads_voluntary_switches" } as const;

/** Describes the threads that a finding is about. Figures that this page does not know are omitted. */
export function threads({ threads: all }: Pick<Finding, "threads">): string[] {
  return all.flatMap(({ name, count, figure: of, value, unit }) => {
    const known = Object.entries(THREAD_PHRASES).find(([key]) => key === of);
    return known ? [say(known[1], { name: count > 1 ? `${name} (${count})` : name, value: formatFigure(value, unit) })] : [];
  });
}

/** Returns the subject of a finding, with its machine where several are shown. */
export function subject({ workload, instance }: { workload: string; instance: string }, several: boolean): string {
  if (workload === "") return instance === "" ? say("machine") : say("machine_named", { instance });
  return onNode(workload, several ? instance : undefined);
}

/** Returns the limit of a workload, also without a finding. */
export function limitedBy(limit: Limit, several: boolean): string {
  return `What limits ${subject(limit, several)}: ${limit.name} (${limit.because}).`;
}

export function plural(n: number, one: string): string {
  return n === 1 ? `1 ${one}` : `${n} ${one}s`;
}

/** Returns the findings or limits within the filters. Those of a whole machine concern all its workloads. */
export function chosen<T extends Pick<Finding, "workload" | "instance">>(all: readonly T[], filters: Chosen): T[] {
  return all.filter(({ workload, instance }) => passes(filters, workload, instance));
}

/** The largest number of findings that are listed of a cause, as in the answer. */
const MOST_MEMBERS = 50;

/**
 * Returns the causes of several machines within the filters. If only some findings of a cause pass, the figures are theirs. The
 * findings decide, because a cause lists the largest only. A recorded report may have fewer of them.
 */
export function rolledUp(causes: readonly Cause[], findings: readonly Finding[], filters: Chosen): Cause[] {
  return causes
    .flatMap((cause) => {
      const all = findings.filter(({ rule, instance }) => rule === cause.rule && instance !== "").map(memberOf);
      const known = all.length < cause.members.length ? cause.members : all;
      const members = chosen(known, filters);
      return members.length === known.length ? [cause] : part(cause, members);
    })
    .sort(largerSaving);
}

/** Returns the part of a cause with these findings, if they are on several machines. */
function part(cause: Cause, members: Cause["members"]): Cause[] {
  const machines = new Set(members.map((m) => m.instance)).size;
  if (machines < 2) return [];
  const sum = (of: "saved_cores_low" | "saved_cores_high"): number => members.reduce((total, m) => total + m[of], 0);
  const severity = [...SEVERITIES].reverse().find((one) => members.some((m) => m.severity === one)) ?? cause.severity;
  const listed = [...members].sort(largerSaving).slice(0, MOST_MEMBERS);
  return [{ ...cause, severity, members: listed, machines, findings: members.length, saved_cores_low: sum("saved_cores_low"), saved_cores_high: sum("saved_cores_high") }];
}

type Saved = Pick<Cause, "saved_cores_low" | "saved_cores_high">;

function largerSaving(a: Saved, b: Saved): number {
  return b.saved_cores_low - a.saved_cores_low || b.saved_cores_high - a.saved_cores_high;
}

function memberOf({ workload, instance, severity, saving }: Finding): Cause["members"][number] {
  return { workload, instance, severity, saved_cores_low: saving?.low ?? 0, saved_cores_high: saving?.high ?? 0 };
}

/** Describes a cause that several machines have. */
export function causeText(cause: Cause): string {
  const [first] = cause.members;
  const saving = savedText(cause);
  const { title, rule, severity } = cause;
  const counts = { machines: plural(cause.machines, "machine"), findings: plural(cause.findings, "finding") };
  const worth = saving === "" || !first ? "" : say("fleet_saved", { saving, first: subject(first, true) });
  return say("fleet_cause", { title, rule, severity, ...counts }) + worth;
}

/** Describes one finding of such a cause. */
export function memberText(member: Cause["members"][number]): string {
  return [subject(member, true), member.severity, savedText(member)].filter(Boolean).join(", ");
}

function savedText({ saved_cores_low: low, saved_cores_high: high }: Pick<Cause, "saved_cores_low" | "saved_cores_high">): string {
  return high > 0 ? savingText({ low, high }) : "";
}

/** Says that nothing was found, or why that is not known. */
function verdictOfNone({ workloads, checked, skipped }: Report, window: string, looked: string): string {
  if (workloads === 0) return say("verdict_unknown", { window });
  if (checked.length > 0) return say("verdict_nothing", { looked, rules: plural(checked.length, "rule") });
  const usual = usualReason(skipped);
  return say("verdict_no_rule", { looked, because: usual === "" ? "" : say("because", { reason: usual }) });
}

/** Returns the reason for which most rules have judged no workload. */
function usualReason(skipped: Report["skipped"]): string {
  const rules = new Map<string, number>();
  for (const { reason } of skipped) rules.set(reason, (rules.get(reason) ?? 0) + 1);
  const sorted = [...rules].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1));
  return sorted[0]?.[0] ?? "";
}

/** Summarises the report in a sentence. */
export function verdictText(report: Report, shown: readonly Finding[], several: boolean): string {
  const window = formatSpan(report.window_seconds);
  const looked = say("looked", { workloads: plural(report.workloads, "workload"), window });
  const [first] = shown;
  const muted = report.muted > 0 ? ` ${say("verdict_muted", { muted: plural(report.muted, "finding") })}` : "";
  if (!first) return verdictOfNone(report, window, looked) + muted;
  const gain = worthText(first);
  const worth = say(gain === "" ? "verdict_first" : "verdict_gain", { subject: subject(first, several), gain });
  return say("verdict_found", { findings: plural(shown.length + report.left_out, "finding"), looked }) + worth + muted;
}

const MOST_PROBLEMS = 8;

/** Lists what was not judged, grouped by reason. */
export function notJudged(report: Report, several: boolean): string[] {
  const byReason = new Map<string, string[]>();
  for (const { rule, reason } of report.skipped) byReason.set(reason, [...(byReason.get(reason) ?? []), rule]);
  const rules = [...byReason].sort(([a], [b]) => (a < b ? -1 : 1)).map(([reason, names]) => `${names.join(", ")}: ${reason}`);
  const short = report.problems.filter(isShort).map((p) => subject(p, several));
  if (short.length > 0) rules.push(say("short", { workloads: listFirst(short, 8) }));
  // Rules report absent metrics themselves.
  const grave = report.problems.filter((p) => p.kind !== "absent" && !isShort(p)).map((p) => problemText(p, several));
  const left = grave.length - MOST_PROBLEMS;
  return [...rules, ...(left > 1 ? [...grave.slice(0, MOST_PROBLEMS), `${left} more problems`] : grave)];
}

/** Reports whether the problem is that a workload ran too briefly. */
function isShort({ kind, workload }: Problem): boolean {
  return kind === "gap" && workload !== "";
}

function problemText(problem: Problem, several: boolean): string {
  const { workload, query, instance, error, rules } = problem;
  const about = workload !== "" ? `${subject(problem, several)}: ` : query !== "" ? say("query", { query }) : instance !== "" ? `${instance}: ` : "";
  return about + error + (rules.length > 0 ? say("for_rules", { rules: listFirst(rules) }) : "");
}
