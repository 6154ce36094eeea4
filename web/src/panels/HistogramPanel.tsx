// SPDX-License-Identifier: Apache-2.0

// The kind "histogram": the distribution of the events of the shown interval over buckets.
import { fillTemplate } from "../lib/promql";
import { formatSpan } from "../lib/time";
import { formatNumber, formatShare, formatValue } from "../lib/units";
import { HEAT_POINTS } from "./panel-queries";
import { addUpTime, bucketName, bucketQuantile, lowerBound, toBuckets, trimBuckets } from "./buckets";
import { Panel, panelState } from "./Panel";
import type { HistogramDef } from "./types";
import { useFrame, useNear, useShown } from "./use-data";

export function HistogramPanel({ def }: { def: HistogramDef }) {
  const [root, near] = useNear();
  const { interval, ...filling } = useShown();
  const loaded = useFrame(def.queries, HEAT_POINTS, near, false);
  const step = loaded.value?.step ?? filling.scrapeInterval;
  const all = toBuckets(addUpTime(loaded.value?.frame ?? { times: [], series: [] }, step));
  const buckets = trimBuckets(all);
  const counts = buckets.cells.map((row) => row[0] ?? 0);
  const total = counts.reduce((sum, n) => sum + n, 0);
  const greatest = Math.max(...counts, 0);
  const whole = all.cells.map((row) => row[0] ?? 0);
  const quantile = (share: number): string => formatValue(bucketQuantile(share, all.bounds, whole), def.unit);
  return (
    <Panel
      def={def}
      state={panelState(loaded, buckets.bounds.length === 0)}
      error={loaded.error}
      stale={loaded.stale}
      note={`over ${formatSpan(interval.to - interval.from)}`}
      exprs={def.queries.map((q) => fillTemplate(q.expr, { ...filling, step }))}
      root={root}
    >
      <ol class="columns" aria-label={`${def.title}, by ${def.unit}`}>
        {buckets.bounds.map((bound, i) => {
          const name = bucketName(lowerBound(all.bounds, bound), bound, def.unit);
          const text = `${name}: ${formatNumber(counts[i] ?? 0)}, ${formatShare((counts[i] ?? 0) / total)}`;
          return (
            <li key={bound} title={text}>
              <span class="only-spoken">{text}</span>
              <span class="track" aria-hidden="true">
                <span class="fill" ref={raise((counts[i] ?? 0) / greatest)} />
              </span>
              <span class="bound" aria-hidden="true">
                {bound === Infinity ? "∞" : formatValue(bound, def.unit)}
              </span>
            </li>
          );
        })}
      </ol>
      <p class="at">
        n = {formatNumber(total)}; half up to {quantile(0.5)}, 99 in 100 up to {quantile(0.99)}
      </p>
    </Panel>
  );
}

function raise(share: number): (element: HTMLElement | null) => void {
  return (element) => {
    if (element) element.style.height = `${share > 0 ? Math.max(1, share * 100) : 0}%`;
  };
}
