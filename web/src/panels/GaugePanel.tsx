// SPDX-License-Identifier: Apache-2.0

// The kind "gauge": a value, its limit, and thresholds.
import { fillTemplate } from "../lib/promql";
import { formatShare, formatValue } from "../lib/units";
import { Arc } from "./charts/Arc";
import { Panel, panelState } from "./Panel";
import type { GaugeDef, Threshold } from "./types";
import { MINUTE, useInstant, useNear, useShown } from "./use-data";

/** Returns the worst level that a share has reached, or undefined. */
export function levelOf(share: number, thresholds: readonly Threshold[]): Threshold["level"] | undefined {
  return [...thresholds].sort((a, b) => b.at - a.at).find((t) => share >= t.at)?.level;
}

const WORD = { warn: "near its limit", bad: "at its limit" };

export function GaugePanel({ def }: { def: GaugeDef }) {
  const [root, near] = useNear();
  const filling = useShown();
  const loaded = useInstant(def.queries.map((q) => q.expr), near);
  const [value, limit] = (loaded.value ?? []).map((samples) => samples[0]?.value[1]);
  const share = value !== undefined && limit !== undefined && limit > 0 ? value / limit : undefined;
  const level = share === undefined ? undefined : levelOf(share, def.thresholds);
  const [inUse, there] = def.queries;
  return (
    <Panel
      def={def}
      state={panelState(loaded, share === undefined)}
      error={loaded.error}
      stale={loaded.stale}
      note="newest value"
      exprs={def.queries.map((q) => fillTemplate(q.expr, { ...filling, step: MINUTE }))}
      root={root}
    >
      {share !== undefined && (
        <div
          class={`gauge ${level ?? "well"}`}
          role="meter"
          aria-label={def.title}
          aria-valuemin={0}
          aria-valuemax={100}
          aria-valuenow={Math.min(100, Math.round(share * 100))}
          aria-valuetext={`${formatShare(share)}: ${formatValue(value, def.unit)} ${inUse.legend} of ${formatValue(limit, def.unit)} ${there.legend}`}
        >
          <Arc share={share} thresholds={def.thresholds} />
          <p class="figure">{formatShare(share)}</p>
          <p class="at">
            {formatValue(value, def.unit)} {inUse.legend} of {formatValue(limit, def.unit)} {there.legend}
          </p>
          {level && <p class="level">{WORD[level]}</p>}
        </div>
      )}
    </Panel>
  );
}
