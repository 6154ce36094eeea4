// SPDX-License-Identifier: Apache-2.0

// The kind "heatmap": a histogram's buckets over time.
import { useMemo } from "preact/hooks";
import { fillTemplate } from "../lib/promql";
import { useSession } from "../lib/session";
import { formatSpan } from "../lib/time";
import { HEAT_POINTS } from "./panel-queries";
import { toBuckets, trimBuckets } from "./buckets";
import { Heat } from "./charts/Heat";
import { Panel, panelState } from "./Panel";
import type { HeatmapDef } from "./types";
import { useFrame, useNear, useShown } from "./use-data";

export function HeatmapPanel({ def }: { def: HeatmapDef }) {
  const [root, near] = useNear();
  const session = useSession();
  const { interval, ...filling } = useShown();
  const loaded = useFrame(def.queries, HEAT_POINTS, near, false);
  const all = useMemo(() => (loaded.value ? toBuckets(loaded.value.frame) : undefined), [loaded.value]);
  const buckets = useMemo(() => all && trimBuckets(all), [all]);
  const step = loaded.value?.step ?? filling.scrapeInterval;
  return (
    <Panel
      def={def}
      state={panelState(loaded, buckets?.bounds.length === 0)}
      error={loaded.error}
      stale={loaded.stale}
      note={loaded.value ? `${formatSpan(step)} a column` : undefined}
      exprs={def.queries.map((q) => fillTemplate(q.expr, { ...filling, step }))}
      root={root}
    >
      {buckets && all && (
        <Heat
          buckets={buckets}
          allBounds={all.bounds}
          step={step}
          interval={interval}
          unit={def.unit}
          title={def.title}
          onZoom={(from, to) => {
            session.view.update((view) => ({ ...view, fixed: { from: Math.floor(from), to: Math.ceil(to) }, live: false }));
          }}
        />
      )}
    </Panel>
  );
}
