// SPDX-License-Identifier: Apache-2.0

// What Go needs to fill the queries of the page. `make generate-dashboards` writes it for internal/server/pagequery.
import { ANY_WORKLOAD, CONTAINERS_OF, PLACEHOLDERS, SCRAPES_IN_WINDOW } from "../lib/promql";
import { STEPS } from "../lib/time";
import { MINUTE } from "../panels/panel-queries";
import { MARK_QUERIES } from "../panels/marks";

export function pageQuery(): unknown {
  return {
    placeholders: PLACEHOLDERS,
    anyWorkload: ANY_WORKLOAD,
    containersOf: CONTAINERS_OF,
    scrapesInWindow: SCRAPES_IN_WINDOW,
    steps: STEPS,
    minute: MINUTE,
    // The value of these series is a moment. An alert has no such value; it begins when its series begins.
    marks: Object.entries(MARK_QUERIES).map(([id, expr]) => ({ id, expr, moments: id !== "alerts" })),
  };
}
