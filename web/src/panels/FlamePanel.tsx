// SPDX-License-Identifier: Apache-2.0

// The kind "flame": nested shares of a whole, now, as an icicle: the whole on
// top, its parts below it, each as wide as its value.
import { useMemo, useState } from "preact/hooks";
import { fillTemplate } from "../lib/promql";
import { Icicle } from "./charts/Icicle";
import { buildTree } from "./flame";
import { Panel, panelState } from "./Panel";
import type { FlameDef } from "./types";
import { MINUTE, useInstant, useNear, useShown } from "./use-data";

export function FlamePanel({ def }: { def: FlameDef }) {
  const [root, near] = useNear();
  const filling = useShown();
  const loaded = useInstant(def.columns.map((c) => c.expr), near);
  const [chosen, setChosen] = useState<number | undefined>(undefined);
  const there = def.columns.flatMap((_, i) => ((loaded.value?.[i]?.length ?? 0) > 0 ? [i] : []));
  const at = chosen !== undefined && there.includes(chosen) ? chosen : (there[0] ?? 0);
  const column = def.columns[at];
  const tree = useMemo(
    () =>
      buildTree(
        (loaded.value?.[at] ?? []).map((s) => ({ path: def.keys.map((k) => s.metric[k.label] ?? "(none)"), value: s.value[1] })),
        "all",
      ),
    [loaded.value, at, def],
  );
  return (
    <Panel
      def={def}
      state={panelState(loaded, tree.value === 0)}
      error={loaded.error}
      stale={loaded.stale}
      note={`${column?.title.toLowerCase() ?? ""}, newest minute`}
      exprs={def.columns.map((c) => fillTemplate(c.expr, { ...filling, step: MINUTE }))}
      root={root}
    >
      {there.length > 1 && (
        <div class="chart-bar" role="group" aria-label="What the width stands for">
          {there.map((i) => (
            <button
              type="button"
              key={i}
              class="chip"
              aria-pressed={i === at}
              onClick={() => {
                setChosen(i);
              }}
            >
              {def.columns[i]?.title}
            </button>
          ))}
        </div>
      )}
      <Icicle tree={tree} unit={column?.unit ?? def.unit} title={def.title} levels={def.keys.map((k) => k.title)} />
    </Panel>
  );
}
