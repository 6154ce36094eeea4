// SPDX-License-Identifier: Apache-2.0

// All that a report shows, and so all that is asked for it. Pure data: `npm run dashboards` writes it down for who asks.
import { FACT_EXPRS } from "../pages/findings/facts";
import { asks } from "../panels/asks";
import { DASHBOARDS } from "../panels/dashboards";
import { WINDOWS } from "../panels/dashboards/findings";
import { probeExpr } from "../panels/empty-reason";
import { MARK_POINTS, MARK_QUERIES } from "../panels/marks";
import type { Dashboard } from "../panels/types";

interface Question {
  /** PromQL with placeholders. */
  expr: string;
  /** Points over the time of the report; 0 asks for its end alone. */
  points: number;
  /** Its values are moments, of which every digit counts. */
  exact?: true;
}

/** What a report shows, in its order: every panel once, at its first place; the windows are beside the findings. */
export const CONTENTS: readonly Dashboard[] = once(DASHBOARDS.filter(({ single }) => single !== true)); // of one workload there is nothing else to show

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
  const panels = [...CONTENTS.flatMap((d) => d.sections.flatMap((s) => s.panels)), WINDOWS]; // the last is beside the findings
  const all: Question[] = [
    ...FACT_EXPRS.map((expr) => ({ expr, points: 0 })),
    ...panels.flatMap((def) => asks(def).map(({ expr, points = 0 }) => ({ expr, points }))),
    ...panels.flatMap((def) => (def.empty.probe === undefined ? [] : [{ expr: probeExpr(def.empty.probe), points: 0 }])),
    ...Object.values(MARK_QUERIES).map((expr): Question => ({ expr, points: MARK_POINTS, exact: true })),
  ];
  return [...new Map(all.map((q) => [`${q.points} ${q.expr}`, q])).values()];
}
