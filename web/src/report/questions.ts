// SPDX-License-Identifier: Apache-2.0

// The content and all queries of a report. Pure data: `npm run dashboards` writes it as JSON.
import { FACT_EXPRS } from "../pages/findings/facts";
import { panelQueries } from "../panels/panel-queries";
import { DASHBOARDS } from "../panels/dashboards";
import { WINDOWS } from "../panels/dashboards/findings";
import { probeExpr } from "../panels/empty-reason";
import { MARK_POINTS, MARK_QUERIES } from "../panels/marks";
import type { Dashboard } from "../panels/types";

interface Question {
  /** PromQL with placeholders. */
  expr: string;
  /** Points over the time of the report; 0 evaluates its end only. */
  points: number;
  /** Its values are moments, which need every digit. */
  exact?: true;
}

/** The content of a report: every panel once, at its first place. Panels of a single workload are omitted. */
export const CONTENTS: readonly Dashboard[] = once(DASHBOARDS.filter(({ single }) => single !== true));

function once(dashboards: readonly Dashboard[]): Dashboard[] {
  const seen = new Set<string>([WINDOWS.id]);
  return dashboards
    .map((d) => ({
      ...d,
      sections: d.sections
        .map((s) => ({ ...s, id: `${d.id}-${s.id}`, panels: s.panels.filter(({ id }) => !seen.has(id) && seen.add(id)) }))
        .filter((s) => s.panels.length > 0),
    }))
    .filter((d) => d.sections.length > 0);
}

export function questions(): Question[] {
  const panels = [...CONTENTS.flatMap((d) => d.sections.flatMap((s) => s.panels)), WINDOWS];
  const all: Question[] = [
    ...FACT_EXPRS.map((expr) => ({ expr, points: 0 })),
    ...panels.flatMap((def) => panelQueries(def).map(({ expr, points = 0 }) => ({ expr, points }))),
    ...panels.flatMap((def) => (def.empty.probe === undefined ? [] : [{ expr: probeExpr(def.empty.probe), points: 0 }])),
    ...Object.values(MARK_QUERIES).map((expr): Question => ({ expr, points: MARK_POINTS, exact: true })),
  ];
  return [...new Map(all.map((q) => [`${q.points} ${q.expr}`, q])).values()];
}
