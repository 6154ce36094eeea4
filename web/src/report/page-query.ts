// SPDX-License-Identifier: Apache-2.0

// What Go has to know to fill the queries of the page: `make generate-dashboards` writes it for internal/server/pagequery.
import { ANY_WORKLOAD, CONTAINERS_OF, PLACEHOLDERS, SCRAPES_IN_WINDOW } from "../lib/promql";
import { STEPS } from "../lib/time";
import { MINUTE } from "../panels/asks";
import { MARK_QUERIES } from "../panels/marks";

export function pageQuery(): unknown {
  return {
    placeholders: PLACEHOLDERS,
    anyWorkload: ANY_WORKLOAD,
    containersOf: CONTAINERS_OF,
    scrapesInWindow: SCRAPES_IN_WINDOW,
    steps: STEPS,
    minute: MINUTE,
    // An alert is there from a moment on; of all else the value is the moment.
    marks: Object.entries(MARK_QUERIES).map(([id, expr]) => ({ id, expr, moments: id !== "alerts" })),
  };
}
