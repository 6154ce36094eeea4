// SPDX-License-Identifier: Apache-2.0

// Cases of filled queries and of steps. `make generate-dashboards` writes them for the tests of
// internal/server/pagequery, which fills the queries of reports where no browser runs.
import { fillTemplate, SCRAPES_IN_WINDOW } from "../lib/promql";
import { STEPS, stepFor } from "../lib/time";

interface FillCase {
  template: string;
  workloads: string[];
  /** Seconds: between two points, between two scrapes, and since the agent began to count; null if that is not known. */
  step: number;
  scrape: number;
  age: number | null;
  want: string;
}

interface StepCase {
  seconds: number;
  scrape: number;
  points: number;
  want: number;
}

const TEMPLATES = [
  "sum by (workload) ($rate(a{$workloads}[$window])) / $interval",
  'a{b="c",$nodes} + d{$nodes} $containers',
  "a{$candidates} / on (b) $rate(c{$candidates}[$window])",
  'label_replace(a{$workloads}, "x", "$1", "y", "^(.*)$")',
];

/** Names with every character that PromQL or RE2 treats specially, and with placeholders. */
const WORKLOADS = [[], ["redis"], ["$rate$&"], ['a.b+c*d?e(f)g[h]i{j}k|l^m$n"o\\p\nq', "r-s/t:u,v é"], ["a", "b", "a"]];

const SCRAPES = [0.5, 5, 60];

function fillCase(template: string, workloads: string[], step: number, scrape: number, age: number | null): FillCase {
  return { template, workloads, step, scrape, age, want: fillTemplate(template, { workloads, step, scrapeInterval: scrape, age: age ?? undefined }) };
}

export function fillCases(): { fill: FillCase[]; steps: StepCase[] } {
  const names = TEMPLATES.flatMap((template) => WORKLOADS.map((workloads) => fillCase(template, workloads, 1.5, 0.5, null)));
  const windows = SCRAPES.flatMap((scrape) =>
    STEPS.filter((step) => step <= 60 || step >= 3600).flatMap((step) => {
      const least = SCRAPES_IN_WINDOW * scrape;
      const ages = new Set([0, least - 0.1, least, 2 * least - 0.1, 2 * least, step - 0.1, step, 3.7 * step]);
      return [null, ...ages].filter((age) => age === null || age >= 0).map((age) => fillCase("$rate $window $span $interval", [], step, scrape, age));
    }),
  );
  const steps = SCRAPES.flatMap((scrape) =>
    [60, 300, 900, 3600, 86_400, 604_800, 1e8].flatMap((seconds) =>
      [40, 60, 120, 240].map((points) => ({ seconds, scrape, points, want: stepFor(seconds, scrape, points) })),
    ),
  );
  return { fill: [...names, ...windows], steps };
}
