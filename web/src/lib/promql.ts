// SPDX-License-Identifier: Apache-2.0

// Fills the placeholders of a panel's PromQL. The templates are pure data and
// know seven placeholders:
//
//   $workloads  the matchers of all filters, for a family with the label workload
//   $candidates the same without the choice of workloads: what there is to choose from
//   $nodes      the matcher of the filter of nodes, for a family without that label;
//               the last one between its braces, for it may be nothing
//   $containers what keeps of the families container_* those that the filters chose
//   $rate       the rate function
//   $window     the window of that function
//   $interval   the distance between two points of the answer
//
// Every selector has one of the first three (defs.test.ts). Other renderers
// (Grafana) replace the same seven by their own variables.
import { type Chosen, join, matcher, ofKind, oneOf } from "./filters";

export const PLACEHOLDERS = ["workloads", "candidates", "nodes", "containers", "rate", "window", "interval"] as const;

/** Without a choice the idle task alone is left out: it is the machine doing nothing, and would be greater than everything else. */
export const ANY_WORKLOAD = `workload!="idle"`;

/** The value of $containers where workloads are chosen. */
export const CONTAINERS_OF = "and on (instance, id) teescope_container_info{$workloads}";

/** The shortest window of a rate, in scrapes. */
export const SCRAPES_IN_WINDOW = 4;

export interface Filling extends Chosen {
  /** Distance between two points, seconds. */
  step: number;
  /** Seconds between two scrapes. */
  scrapeInterval: number;
  /** Seconds since the agent began to count, if known. */
  age?: number | undefined;
  /** Whether several machines are shown: what is of one of them is then named with it. */
  several?: boolean | undefined;
}

/** The matcher of the filter of workloads. */
export function workloadMatcher({ workloads, filters = [] }: Chosen): string {
  const names = workloads.map((text) => ({ text, regex: false }));
  return matcher("workload", [...names, ...ofKind(filters, "workload")]) || ANY_WORKLOAD;
}

export function nodeMatcher({ filters = [] }: Chosen): string {
  return matcher("instance", ofKind(filters, "node"));
}

/** What the filters of other kinds leave. */
function others(chosen: Chosen): string {
  return join(chosen.mapped ? oneOf("workload", chosen.mapped) : "", nodeMatcher(chosen));
}

/**
 * Containers are not labelled with their workload; an info family says which
 * is whose. Without a choice nothing is asked of it, so that the containers of
 * an exporter that does not have it are shown too.
 */
function containerFilter(chosen: Chosen): string {
  const free = chosen.workloads.length === 0 && ofKind(chosen.filters ?? [], "workload").length === 0 && !chosen.mapped;
  return free ? "" : CONTAINERS_OF.replace("$workloads", () => join(workloadMatcher(chosen), others(chosen)));
}

/**
 * The window of a rate: at least four scrapes, and no gap between points. Of a
 * longer one than the agent is old, rate would divide what it saw by time in
 * which it did not look, and report too little: the window grows with the
 * agent, twofold each time, so that it is not another question at each tick.
 */
export function rateWindow(step: number, scrapeInterval: number, age = Infinity): number {
  const least = SCRAPES_IN_WINDOW * scrapeInterval;
  const whole = Math.max(least, step);
  if (age >= whole) return Math.ceil(whole);
  let window = least;
  while (2 * window <= age) window *= 2;
  return Math.ceil(window);
}

/** Whether points are as dense as scrapes: the newest is then that of the newest scrape, whenever it is asked for. */
export function isDense(step: number, scrapeInterval: number): boolean {
  return step <= scrapeInterval;
}

/**
 * Chooses rate or irate. Where points are as dense as scrapes, irate is exact:
 * the events between two neighbouring scrapes. Where they are further apart it
 * would not see the events of some scrapes. Until the agent has been scraped
 * four times, only irate does not divide by time before it.
 */
export function rateFunction({ step, scrapeInterval, age = Infinity }: Filling): "rate" | "irate" {
  return age < SCRAPES_IN_WINDOW * scrapeInterval || isDense(step, scrapeInterval) ? "irate" : "rate";
}

const PLACEHOLDER = new RegExp(`\\{\\$nodes\\}|,\\$nodes\\b|\\$(${PLACEHOLDERS.join("|")})\\b`, "g");

export function fillTemplate(template: string, filling: Filling): string {
  const values: Readonly<Record<(typeof PLACEHOLDERS)[number], string>> = {
    workloads: join(workloadMatcher(filling), others(filling)),
    candidates: join(workloadMatcher({ workloads: [] }), others(filling)),
    nodes: nodeMatcher(filling),
    containers: containerFilter(filling),
    rate: rateFunction(filling),
    window: `${rateWindow(filling.step, filling.scrapeInterval, filling.age)}s`,
    interval: `${filling.step}s`,
  };
  // In one pass: a workload's name may itself look like a placeholder. With
  // $nodes goes the comma or the pair of braces that would be left of it.
  return template.replace(PLACEHOLDER, (found, name: (typeof PLACEHOLDERS)[number] | undefined) => {
    if (name !== undefined) return values[name];
    return values.nodes === "" ? "" : found.replace("$nodes", () => values.nodes);
  });
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

/**
 * Names a series. Where several machines are shown, what is of one of them says
 * of which: a workload of the same name elsewhere is another one.
 */
export function seriesName(template: string, labels: Readonly<Record<string, string>>, several: boolean | undefined): string {
  return onNode(fillLegend(template, labels), several === true && !template.includes("{{instance}}") ? labels["instance"] : undefined);
}

/** The name of something with the machine that it is on, where that has to be said. */
export function onNode(name: string, node: string | undefined): string {
  return node === undefined || node === "" ? name : `${name} · ${node}`;
}
