// SPDX-License-Identifier: Apache-2.0

// The kind "bars": the current parts of a whole, in descending order.
import { fillTemplate, seriesName } from "../lib/promql";
import { restName } from "../lib/series";
import { formatShare, formatValue } from "../lib/units";
import { Panel, panelState } from "./Panel";
import type { BarsDef } from "./types";
import { MINUTE, useInstant, useNear, useShown } from "./use-data";

interface Bar {
  name: string;
  value: number;
}

/** Sorts the bars, keeps the greatest, and folds the others. Zero values are omitted. */
export function foldBars(bars: readonly Bar[], top: number): Bar[] {
  const sorted = bars.filter((b) => b.value > 0).sort((a, b) => b.value - a.value || a.name.localeCompare(b.name));
  if (sorted.length <= top + 1) return sorted;
  const rest = sorted.slice(top);
  const sum = rest.reduce((total, b) => total + b.value, 0);
  return [...sorted.slice(0, top), { name: restName(rest.length), value: sum }];
}

export function BarsPanel({ def }: { def: BarsDef }) {
  const [root, near] = useNear();
  const shown = useShown();
  const loaded = useInstant(def.queries.map((q) => q.expr), near);
  const raw = (loaded.value ?? []).flatMap((samples, i) =>
    samples.map((s) => ({ name: seriesName(def.queries[i]?.legend ?? "", s.metric, shown.several), value: s.value[1] })),
  );
  const bars = foldBars(raw, def.top ?? 10);
  const total = bars.reduce((sum, b) => sum + b.value, 0);
  const greatest = bars.reduce((max, b) => Math.max(max, b.value), 0);
  return (
    <Panel
      def={def}
      state={panelState(loaded, bars.length === 0)}
      error={loaded.error}
      stale={loaded.stale}
      note="mean of the last minute"
      exprs={def.queries.map((q) => fillTemplate(q.expr, { ...shown, step: MINUTE }))}
      root={root}
    >
      <ol class="bars">
        {bars.map((bar) => (
          <li key={bar.name}>
            <span class="name">{bar.name}</span>
            <span class="track">
              <span class="fill" ref={widen(bar.value / greatest)} />
            </span>
            <span class="value">{formatValue(bar.value, def.unit)}</span>
            <span class="share">{formatShare(bar.value / total)}</span>
          </li>
        ))}
      </ol>
    </Panel>
  );
}

function widen(share: number): (element: HTMLElement | null) => void {
  return (element) => {
    if (element) element.style.width = `${Math.max(0.5, share * 100)}%`;
  };
}
