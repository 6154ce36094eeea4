// SPDX-License-Identifier: Apache-2.0

// A semicircle that fills from left to right, with a tick at each threshold.
import type { Threshold } from "../types";

const RADIUS = 70;
const CENTRE = { x: 90, y: 84 };

/** Returns the point of the arc at a share, at a distance from its centre. */
export function arcPoint(share: number, radius = RADIUS): { x: number; y: number } {
  const angle = Math.PI * (1 - Math.max(0, Math.min(1, share)));
  return { x: CENTRE.x + radius * Math.cos(angle), y: CENTRE.y - radius * Math.sin(angle) };
}

/** Returns the path of the arc from its left end to a share. */
export function arcPath(share: number): string {
  const [from, to] = [arcPoint(0), arcPoint(share)];
  return `M${from.x.toFixed(1)} ${from.y.toFixed(1)}A${RADIUS} ${RADIUS} 0 0 1 ${to.x.toFixed(1)} ${to.y.toFixed(1)}`;
}

export function Arc({ share, thresholds }: { share: number; thresholds: readonly Threshold[] }) {
  return (
    <svg class="arc" viewBox="0 0 180 94" aria-hidden="true">
      <path class="track" d={arcPath(1)} />
      {share > 0 && <path class="fill" d={arcPath(share)} />}
      {thresholds.map((t) => {
        const [inner, outer] = [arcPoint(t.at, RADIUS - 10), arcPoint(t.at, RADIUS + 10)];
        return <line key={t.at} class={t.level} x1={inner.x} y1={inner.y} x2={outer.x} y2={outer.y} />;
      })}
    </svg>
  );
}
