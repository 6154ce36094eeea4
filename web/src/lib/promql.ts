// SPDX-License-Identifier: Apache-2.0

// Fills the placeholders of a panel's PromQL. The templates are pure data and
// know five placeholders:
//
//   $workloads  the matcher of the workload filter, to be put between braces
//   $containers what keeps of the families container_* those that the filter chose
//   $rate       the rate function
//   $window     the window of that function
//   $interval   the distance between two points of the answer
//
// Other renderers (Grafana) replace the same five by their own variables.

export interface Filling {
  /** Chosen workloads; none means all. */
  workloads: readonly string[];
  /** Distance between two points, seconds. */
  step: number;
  /** Seconds between two scrapes. */
  scrapeInterval: number;
  /** Seconds since the agent began to count, if known. */
  age?: number | undefined;
}

/** Quotes a string for a PromQL matcher. */
export function quote(text: string): string {
  return `"${text.replace(/[\\"]/g, "\\$&").replace(/\n/g, "\\n")}"`;
}

/** Escapes what RE2 takes for a metacharacter. */
export function escapeRegex(text: string): string {
  return text.replace(/[\\.+*?()|[\]{}^$]/g, "\\$&");
}

/**
 * The matcher of the filter. With no choice it leaves out only `idle`: the
 * idle task is the machine doing nothing, and would dwarf everything else.
 */
export function workloadMatcher(workloads: readonly string[]): string {
  const [first] = workloads;
  if (first === undefined) return `workload!="idle"`;
  if (workloads.length === 1) return `workload=${quote(first)}`;
  return `workload=~${quote(workloads.map(escapeRegex).join("|"))}`;
}

/**
 * Containers are not labelled with their workload; an info family says which
 * is whose. Without a choice nothing is asked of it, so that the containers of
 * an exporter that does not have it are shown too.
 */
export function containerFilter(workloads: readonly string[]): string {
  return workloads.length === 0 ? "" : `and on (instance, id) teescope_container_info{${workloadMatcher(workloads)}}`;
}

/** The window of a rate: at least four scrapes, and no gap between points. */
export function rateWindow(step: number, scrapeInterval: number): number {
  return Math.ceil(Math.max(4 * scrapeInterval, step));
}

/**
 * Chooses rate or irate. Where points are about as dense as scrapes, irate is
 * exact: the events between two neighbouring scrapes. While the agent is
 * younger than the window, rate would divide what it saw by time in which it
 * did not look, and report too little; irate does not.
 */
export function rateFunction(filling: Filling): "rate" | "irate" {
  const young = filling.age !== undefined && filling.age < rateWindow(filling.step, filling.scrapeInterval);
  return young || filling.step <= 2 * filling.scrapeInterval ? "irate" : "rate";
}

export function fillTemplate(template: string, filling: Filling): string {
  const values: Readonly<Record<string, string>> = {
    $workloads: workloadMatcher(filling.workloads),
    $containers: containerFilter(filling.workloads),
    $rate: rateFunction(filling),
    $window: `${rateWindow(filling.step, filling.scrapeInterval)}s`,
    $interval: `${filling.step}s`,
  };
  // In one pass: a workload's name may itself look like a placeholder.
  return template.replace(/\$(workloads|containers|rate|window|interval)\b/g, (placeholder) => values[placeholder] ?? placeholder);
}

/**
 * Fills a legend template such as "{{workload}} {{mode}}" from labels. Of
 * several alternatives, "{{pod}}/{{container}}|{{name}}", the first counts
 * whose labels are all there, or else the last.
 */
export function fillLegend(template: string, labels: Readonly<Record<string, string>>): string {
  const alternatives = template.split("|");
  const complete = (text: string): boolean => [...text.matchAll(/\{\{(\w+)\}\}/g)].every(([, label]) => (labels[label ?? ""] ?? "") !== "");
  const chosen = alternatives.find(complete) ?? alternatives.at(-1) ?? "";
  const text = chosen.replace(/\{\{(\w+)\}\}/g, (_, label: string) => labels[label] ?? "").trim();
  return text === "" ? "(no name)" : text;
}
