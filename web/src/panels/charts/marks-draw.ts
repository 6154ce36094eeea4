// SPDX-License-Identifier: Apache-2.0

// Draws marks over a chart: a thin vertical line with a flag on top. A flag has the letter of the mark's kind.
// Several marks at one position share a flag with their number. The text below the chart explains them.
import { token } from "../../lib/theme";
import type { Interval } from "../../lib/time";
import type { Mark, MarkKind } from "../marks";

/** Colours and dashes. The letter distinguishes the kinds without colours. */
const COLOUR: Readonly<Record<MarkKind, string>> = { alert: "--bad", finding: "--warn", deployment: "--text", restart: "--accent", start: "--muted" };
const DASHES: Readonly<Record<MarkKind, readonly number[]>> = { alert: [3, 3], finding: [3, 3], deployment: [], restart: [6, 2, 1, 2], start: [1, 4] };

/** Returns the letter on the flag of a kind. */
export const letter = (kind: MarkKind): string => kind.charAt(0).toUpperCase();

/** Minimum distance of flags. Nearer marks share a flag. */
const FLAG_WIDTH = 16;

interface Flag {
  position: number;
  text: string;
  /** The most important kind of its marks. */
  kind: MarkKind;
}

/**
 * Returns the flags of marks, the most important first, and their positions. Marks at one position share a flag with
 * their number, and with their letter if it is the same.
 */
export function foldFlags(marks: readonly Mark[], positions: readonly number[], width = FLAG_WIDTH): Flag[] {
  const order = marks.map((_, i) => i).sort((a, b) => (positions[a] ?? 0) - (positions[b] ?? 0) || a - b);
  const groups: number[][] = [];
  for (const i of order) {
    const last = groups.at(-1);
    if (last && (positions[i] ?? 0) - (positions[last[0] ?? 0] ?? 0) < width) last.push(i);
    else groups.push([i]);
  }
  return groups.map((group) => {
    const kinds = new Set(group.map((i) => marks[i]?.kind ?? "start"));
    const kind = marks[Math.min(...group)]?.kind ?? "start";
    const count = group.length > 1 ? String(group.length) : "";
    return { position: positions[group[0] ?? 0] ?? 0, kind, text: kinds.size === 1 ? letter(kind) + count : count };
  });
}

interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** Draws within a box of the canvas. `ratio` is the number of canvas pixels per CSS pixel. */
export function drawMarks(ctx: CanvasRenderingContext2D, marks: readonly Mark[], interval: Interval, box: Box, ratio = 1): void {
  const span = interval.to - interval.from;
  const shown = marks.filter((m) => m.at >= interval.from && m.at <= interval.to);
  const positions = shown.map((m) => Math.round(box.left + ((m.at - interval.from) / span) * box.width));
  ctx.save();
  ctx.lineWidth = ratio;
  ctx.font = `600 ${10 * ratio}px system-ui, sans-serif`;
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  shown.forEach((mark, i) => {
    const x = (positions[i] ?? 0) + 0.5 * ratio;
    ctx.strokeStyle = token(COLOUR[mark.kind]);
    ctx.setLineDash(DASHES[mark.kind].map((dash) => dash * ratio));
    ctx.beginPath();
    ctx.moveTo(x, box.top);
    ctx.lineTo(x, box.top + box.height);
    ctx.stroke();
  });
  for (const { position, text, kind } of foldFlags(shown, positions, FLAG_WIDTH * ratio)) {
    const [x, height] = [position + 0.5 * ratio, 12 * ratio];
    const width = Math.max(height, ctx.measureText(text).width + 4 * ratio);
    ctx.fillStyle = token(COLOUR[kind]);
    ctx.fillRect(x - width / 2, box.top, width, height);
    ctx.fillStyle = token("--surface");
    ctx.fillText(text, x, box.top + height / 2 + 0.5 * ratio);
  }
  ctx.restore();
}
