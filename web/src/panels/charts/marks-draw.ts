// SPDX-License-Identifier: Apache-2.0

// Paints marks over a chart: a thin dashed line down, and a flag with the
// letter of its kind on top. What each means is said in text below the chart.
import type { Interval } from "../../lib/time";
import type { Mark, MarkKind } from "../marks";
import { token } from "./uplot";

const LETTER: Readonly<Record<MarkKind, string>> = { finding: "F", alert: "A", restart: "R" };
const COLOUR: Readonly<Record<MarkKind, string>> = { finding: "--warn", alert: "--bad", restart: "--accent" };

/** Flags nearer than this to the one before are not drawn: their lines are. */
export const FLAG_WIDTH = 13;

/** Which of some places, in the order in which they are given, have room for a flag. */
export function roomForFlags(places: readonly number[], width = FLAG_WIDTH): boolean[] {
  const taken: number[] = [];
  return places.map((place) => {
    const free = taken.every((other) => Math.abs(other - place) >= width);
    if (free) taken.push(place);
    return free;
  });
}

interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** Draws within a box of the canvas; `ratio` is how many of the canvas' pixels are one of CSS'. */
export function drawMarks(ctx: CanvasRenderingContext2D, marks: readonly Mark[], interval: Interval, box: Box, ratio = 1): void {
  const span = interval.to - interval.from;
  const shown = marks.filter((m) => m.at >= interval.from && m.at <= interval.to);
  const places = shown.map((m) => Math.round(box.left + ((m.at - interval.from) / span) * box.width));
  const flagged = roomForFlags(places, FLAG_WIDTH * ratio);
  ctx.save();
  ctx.lineWidth = ratio;
  ctx.setLineDash([3 * ratio, 3 * ratio]);
  ctx.font = `600 ${10 * ratio}px system-ui, sans-serif`;
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  shown.forEach((mark, i) => {
    const x = (places[i] ?? 0) + 0.5 * ratio;
    ctx.strokeStyle = ctx.fillStyle = token(COLOUR[mark.kind]);
    ctx.beginPath();
    ctx.moveTo(x, box.top);
    ctx.lineTo(x, box.top + box.height);
    ctx.stroke();
    if (flagged[i] !== true) return;
    const size = 12 * ratio;
    ctx.fillRect(x - size / 2, box.top, size, size);
    ctx.fillStyle = token("--surface");
    ctx.fillText(LETTER[mark.kind], x, box.top + size / 2 + 0.5 * ratio);
  });
  ctx.restore();
}
