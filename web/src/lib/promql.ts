// SPDX-License-Identifier: Apache-2.0

// Fills the placeholders of a panel's PromQL. The templates are pure data with eight placeholders:
//
//   $workloads  the matchers of all filters, for a family with the label workload
//   $candidates the same without the chosen workloads, for lists to choose from
//   $nodes      the matcher of the filter of nodes, for a family without that label.
//               It is the last one between the braces, because it may be empty.
//   $containers restricts the families container_* to the chosen containers
//   $rate       the rate function
//   $window     the window of that function
//   $span       the seconds that the function covers: the window of rate, two scrapes of irate
//   $interval   the distance between two points of the answer
//
// Every selector has one of the first three (dashboards.test.ts). Other renderers
// (Grafana) replace them by their own variables.
import { type Chosen, join, matcher, ofKind, oneOf } from "./filters";

export const PLACEHOLDERS = ["workloads", "candidates", "nodes", "containers", "rate", "window", "span", "interval"] as const;

/** Without a chosen workload only the idle task is omitted. Its CPU time would exceed that of all workloads. */
export const ANY_WORKLOAD = `workload!="idle"`;

/** The value of $containers when workloads are chosen. */
export const CONTAINERS_OF = "and on (instance, id) teescope_container_info{$workloads}";

/** Minimum length of a rate's window, in scrapes. */
export const SCRAPES_IN_WINDOW = 4;

/**
 * Returns an expression that is 1 for one series of a selector for each combination of these labels: the one with the newest sample.
 * A join needs one series. For some minutes there are two, after what a label names has changed, or after an agent was killed and
 * started again.
 */
export const newest = (selector: string, by: string): string => `(topk by (${by}) (1, timestamp(${selector})) > bool 0)`;

export interface Filling extends Chosen {
  /** Distance between two points, seconds. */
  step: number;
  /** Seconds between two scrapes. */
  scrapeInterval: number;
  /** Seconds since the agent began to count, if known. */
  age?: number | undefined;
  /** Whether several machines are shown. The names of series then contain the machine. */
  several?: boolean | undefined;
}

/** Returns the matcher of the filter of workloads. */
export function workloadMatcher({ workloads, filters = [] }: Chosen): string {
  const names = workloads.map((text) => ({ text, regex: false }));
  return matcher("workload", [...names, ...ofKind(filters, "workload")]) || ANY_WORKLOAD;
}

export function nodeMatcher({ filters = [] }: Chosen): string {
  return matcher("instance", ofKind(filters, "node"));
}

/** Returns the matchers of the filters of other kinds. */
function others(chosen: Chosen): string {
  return join(chosen.mapped ? oneOf("workload", chosen.mapped) : "", nodeMatcher(chosen));
}

/**
 * Containers are not labelled with their workload; an info family has it. Without a chosen workload the filter is
 * empty, so that containers of other exporters are shown too.
 */
function containerFilter(chosen: Chosen): string {
  const free = chosen.workloads.length === 0 && ofKind(chosen.filters ?? [], "workload").length === 0 && !chosen.mapped;
  return free ? "" : CONTAINERS_OF.replace("$workloads", () => join(workloadMatcher(chosen), others(chosen)));
}

/**
 * Returns the window of a rate: at least four scrapes, and without gaps between points. Rate divides by the whole
 * window. A window longer than the agent's age would therefore give too low a rate. The window grows with the agent
 * in powers of two, so that the query does not change at each tick.
 */
export function rateWindow(step: number, scrapeInterval: number, age = Infinity): number {
  const least = SCRAPES_IN_WINDOW * scrapeInterval;
  const whole = Math.max(least, step);
  if (age >= whole) return Math.ceil(whole);
  let window = least;
  while (2 * window <= age) window *= 2;
  return Math.ceil(window);
}

/** Reports whether points are as dense as scrapes. The newest point then has the value of the newest scrape. */
export function isDense(step: number, scrapeInterval: number): boolean {
  return step <= scrapeInterval;
}

/**
 * Chooses rate or irate. Where points are as dense as scrapes, irate is exact: it counts the events between two
 * adjacent scrapes. With wider points it would miss scrapes. Until the agent has been scraped four times, irate is
 * used, because rate would divide by time before the first scrape.
 */
export function rateFunction({ step, scrapeInterval, age = Infinity }: Filling): "rate" | "irate" {
  return age < SCRAPES_IN_WINDOW * scrapeInterval || isDense(step, scrapeInterval) ? "irate" : "rate";
}

/**
 * Returns the words of a query that are names of known metrics. It is not a parser: only Go parses PromQL. It also
 * accepts a query that is being typed, which no parser does.
 */
export function metricsIn(text: string, known: Pick<ReadonlySet<string>, "has">): string[] {
  return [...new Set(text.match(/[a-zA-Z_:][\w:]*/g) ?? [])].filter((word) => known.has(word));
}

const PLACEHOLDER = new RegExp(`\\{\\$nodes\\}|,\\$nodes\\b|\\$(${PLACEHOLDERS.join("|")})\\b`, "g");

export function fillTemplate(template: string, filling: Filling): string {
  const [rate, window] = [rateFunction(filling), rateWindow(filling.step, filling.scrapeInterval, filling.age)];
  const values: Readonly<Record<(typeof PLACEHOLDERS)[number], string>> = {
    workloads: join(workloadMatcher(filling), others(filling)),
    candidates: join(workloadMatcher({ workloads: [] }), others(filling)),
    nodes: nodeMatcher(filling),
    containers: containerFilter(filling),
    rate,
    window: `${window}s`,
    span: String(rate === "irate" ? filling.scrapeInterval : window),
    interval: `${filling.step}s`,
  };
  // One pass, because a workload's name may look like a placeholder. An empty $nodes also removes its comma or
  // braces.
  return template.replace(PLACEHOLDER, (found, name: (typeof PLACEHOLDERS)[number] | undefined) => {
    if (name !== undefined) return values[name];
    return values.nodes === "" ? "" : found.replace("$nodes", () => values.nodes);
  });
}

/**
 * Fills a legend template such as "{{workload}} {{mode}}" from labels. If it has alternatives,
 * "{{pod}}/{{container}}|{{name}}", the first whose labels all exist is used, or else the last.
 */
export function fillLegend(template: string, labels: Readonly<Record<string, string>>): string {
  const alternatives = template.split("|");
  const complete = (text: string): boolean => [...text.matchAll(/\{\{(\w+)\}\}/g)].every(([, label]) => (labels[label ?? ""] ?? "") !== "");
  const chosen = alternatives.find(complete) ?? alternatives.at(-1) ?? "";
  const text = chosen.replace(/\{\{(\w+)\}\}/g, (_, label: string) => labels[label] ?? "").trim();
  return text === "" ? "(no name)" : text;
}

/**
 * Names a series. Where several machines are shown, the name contains the machine, because workloads of the same name
 * may differ.
 */
export function seriesName(template: string, labels: Readonly<Record<string, string>>, several: boolean | undefined): string {
  return onNode(fillLegend(template, labels), several === true && !template.includes("{{instance}}") ? labels["instance"] : undefined);
}

/** Adds the machine to a name, where there is one. */
export function onNode(name: string, node: string | undefined): string {
  return node === undefined || node === "" ? name : `${name} · ${node}`;
}
