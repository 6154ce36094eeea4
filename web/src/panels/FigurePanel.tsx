// SPDX-License-Identifier: Apache-2.0

// The kind "figure": one number and its history.
import { fillTemplate } from "../lib/promql";
import { formatValue, UNIT_LABEL } from "../lib/units";
import { FIGURE_POINTS } from "./panel-queries";
import { Spark } from "./charts/Spark";
import { newestMean } from "./frames";
import { Panel, panelState } from "./Panel";
import type { FigureDef } from "./types";
import { useFrame, useNear, useShown } from "./use-data";

export function FigurePanel({ def }: { def: FigureDef }) {
  const [root, near] = useNear();
  const shown = useShown();
  const loaded = useFrame([def.query], FIGURE_POINTS, near, true);
  const frame = loaded.value?.frame;
  const values = frame?.series[0]?.values ?? [];
  const figure = frame ? newestMean(frame, values) : null;
  const step = loaded.value?.step ?? shown.scrapeInterval;
  return (
    <Panel
      def={def}
      state={panelState(loaded, figure === null)}
      error={loaded.error}
      stale={loaded.stale}
      exprs={[fillTemplate(def.query.expr, { ...shown, step })]}
      root={root}
    >
      <p class="figure" title="Mean over the last minute">
        {formatValue(figure, def.unit)}
        {def.unit === "cores" && <span class="aside"> {UNIT_LABEL[def.unit]}</span>}
      </p>
      <Spark values={values} width={120} height={28} />
    </Panel>
  );
}
