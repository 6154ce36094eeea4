// SPDX-License-Identifier: Apache-2.0

// Limits of these figures: targets, collectors and probes without data, and what is folded or estimated. The server,
// not this module, diagnoses workloads. To add a rule, write a function and add it to RULES.
import { formatValue } from "../../lib/units";
import type { PageId } from "../../lib/url";
import { groupReasons } from "../../lib/words";
import type { Facts } from "./facts";

type Severity = "bad" | "warn" | "note";

export interface Gap {
  id: string;
  severity: Severity;
  title: string;
  detail: string;
  /** The page with details. */
  page?: PageId;
}

type Rule = (facts: Facts) => Gap[];

const targetsDown: Rule = ({ targetsDown: down }) =>
  down.map((instance) => ({
    id: `down-${instance}`,
    severity: "bad",
    title: `${instance} does not answer scrapes`,
    detail: "This page has no data of that machine until it answers. The status page shows the error.",
    page: "status",
  }));

const collectorsFailed: Rule = ({ collectorsFailed: failed }) =>
  failed.map((collector) => ({
    id: `collector-${collector}`,
    severity: "bad",
    title: `The collector “${collector}” failed at the last scrape`,
    detail: "Its metrics are absent, not zero. The log has the reason.",
  }));

const probesMissing: Rule = ({ probes }) => {
  const { missing, attached } = probes;
  if (missing.length === 0) return [];
  const reasons = groupReasons(missing.map((m) => ({ name: m.probe, reason: m.reason })));
  return [
    {
      id: "probes",
      severity: "note",
      title: `${missing.length} of ${attached + missing.length} probes are not attached`,
      detail: `${reasons}. Their metrics are absent from the charts.`,
    },
  ];
};

/** What each level does not count. */
const LEVEL_WORDS: Readonly<Record<string, string>> = {
  untimed: "the time of system calls is not measured",
  sampled: "frequent events are sampled: rates are estimates, and short bursts may be missed",
  totals: "frequent events are sampled and watched processes are not broken down",
  off: "system calls and other frequent events are not counted",
};

const reducedLevels: Rule = ({ levels }) =>
  [...levels].map(([instance, level]) =>
    level === "incomplete"
      ? {
          id: `level-${instance}`,
          severity: "note",
          title: `Counts of ${instance} are not exact`,
          detail: "In the last minute the kernel did not run programs for some events. Each such event is missing in the counts.",
          page: "status",
        }
      : {
          id: `level-${instance}`,
          severity: level === "off" ? "warn" : "note",
          title: `${instance} is too busy to count everything within the overhead budget`,
          detail: `To stay within the budget, ${LEVEL_WORDS[level] ?? level}. --overhead.budget=100% counts every event and costs more.`,
          page: "status",
        },
  );

const missedEvents: Rule = ({ missed }) =>
  [...missed].map(([program, rate]) => ({
    id: `missed-${program}`,
    severity: "note",
    title: `Counts of ${program} are not exact`,
    detail: `The kernel left out ${formatValue(rate, "per_second")} events.`,
    page: "status",
  }));

const folded: Rule = ({ folded: { syscalls: calls, cpu: cores } }) => {
  if (calls === 0 && cores === 0) return [];
  return [
    {
      id: "folded",
      severity: "note",
      title: "Some activity is counted as “other”",
      detail: `${formatValue(calls, "per_second")} of system calls and ${formatValue(cores, "cores")} CPU cores belong to workloads without their own row. Totals are complete. --workloads.max sets the number of rows.`,
    },
  ];
};

const RULES: readonly Rule[] = [targetsDown, collectorsFailed, probesMissing, reducedLevels, missedEvents, folded];

const ORDER: readonly Severity[] = ["bad", "warn", "note"];

/** Returns all limits, the most severe first. */
export function findGaps(facts: Facts): Gap[] {
  return RULES.flatMap((rule) => rule(facts)).sort((a, b) => ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity));
}
