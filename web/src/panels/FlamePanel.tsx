// SPDX-License-Identifier: Apache-2.0

// The kind "flame": nested shares of a whole as an icicle. The whole is on top, its parts are below, and widths are
// values.
import { useMemo } from "preact/hooks";
import { fillTemplate, seriesName } from "../lib/promql";
import { Icicle } from "./charts/Icicle";
import { buildTree } from "./flame";
import { Panel, panelState } from "./Panel";
import type { FlameDef } from "./types";
import { MINUTE, useInstant, useNear, useShown } from "./use-data";
import { usePanel } from "./use-panel";

/** The path of the root. */
const WHOLE: readonly string[] = [];

export function FlamePanel({ def }: { def: FlameDef }) {
  const [root, near] = useNear();
  const filling = useShown();
  const loaded = useInstant(def.columns.map((c) => c.expr), near);
  const { state, set } = usePanel(def.id);
  const levels = def.keys.filter((k) => k.several !== true);
  const there = def.columns.flatMap((_, i) => ((loaded.value?.[i]?.length ?? 0) > 0 ? [i] : []));
  const at = there.find((i) => def.columns[i]?.title === state.pick) ?? there[0] ?? 0;
  const column = def.columns[at];
  const tree = useMemo(
    () =>
      buildTree(
        (loaded.value?.[at] ?? []).map((s) => ({
          path: levels.map((k, level) => seriesName(`{{${k.label}}}`, s.metric, level === 0 && filling.several)),
          value: s.value[1],
        })),
        "all",
      ),
    [loaded.value, at, def, filling.several],
  );
  return (
    <Panel
      def={def}
      state={panelState(loaded, tree.value === 0)}
      error={loaded.error}
      stale={loaded.stale}
      note={`${column?.title.toLowerCase() ?? ""}, mean of the last minute`}
      exprs={def.columns.map((c) => fillTemplate(c.expr, { ...filling, step: MINUTE }))}
      root={root}
    >
      {there.length > 1 && (
        <div class="chart-bar" role="group" aria-label="Meaning of the width">
          {there.map((i) => (
            <button
              type="button"
              key={i}
              class="chip"
              aria-pressed={i === at}
              onClick={() => {
                set({ pick: i === there[0] ? undefined : def.columns[i]?.title });
              }}
            >
              {def.columns[i]?.title}
            </button>
          ))}
        </div>
      )}
      <Icicle tree={tree} unit={column?.unit ?? def.unit} title={def.title} levels={levels.map((k) => k.title)} wide={state.path ?? WHOLE} onWide={(path) => { set({ path }); }} />
    </Panel>
  );
}
