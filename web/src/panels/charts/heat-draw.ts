// SPDX-License-Identifier: Apache-2.0

// Draws a heat map on a canvas: cells, axes, marks. All lengths are CSS pixels.
import { token } from "../../lib/theme";
import type { Interval } from "../../lib/time";
import { formatValue, type Unit } from "../../lib/units";
import { type Buckets, greatestCell, heatShare, lowerBound } from "../buckets";
import type { Mark } from "../marks";
import { drawMarks } from "./marks-draw";
import { TIME_STEPS, timeLabels } from "./uplot";

/** Colours of the scale, from low to high: tokens --heat-0 ... --heat-4. */
const STOPS = 5;

interface HeatBox {
  left: number;
  top: number;
  width: number;
  height: number;
}

export interface HeatPicture {
  buckets: Buckets;
  /** All upper bounds of the histogram. The one below the lowest drawn bucket is its lower bound. */
  allBounds: readonly number[];
  step: number;
  interval: Interval;
  unit: Unit;
  marks: readonly Mark[];
  /** The time under the cursor of any chart. */
  hover: number | undefined;
}

/** Returns the area of the cells in a canvas of that size. */
export function heatBox(width: number, height: number): HeatBox {
  return { left: 62, top: 16, width: Math.max(1, width - 62 - 18), height: Math.max(1, height - 16 - 22) };
}

/** Returns the bucket and the column at a point of the canvas. */
export function cellAt(x: number, y: number, box: HeatBox, picture: HeatPicture): { row: number; column: number } | undefined {
  const { buckets, interval, step } = picture;
  const rows = buckets.bounds.length;
  if (x < box.left || x >= box.left + box.width || y < box.top || y >= box.top + box.height || rows === 0) return undefined;
  const time = interval.from + ((x - box.left) / box.width) * (interval.to - interval.from);
  const column = buckets.times.findIndex((t) => time <= t && time > t - step);
  const row = rows - 1 - Math.floor(((y - box.top) / box.height) * rows);
  return column < 0 ? undefined : { row, column };
}

/** Interpolates the colour of the scale at a share. Colours are #rrggbb, or #rgb where the minifier shortened them. */
export function heatColour(share: number, stops: readonly string[]): string {
  const at = Math.max(0, Math.min(1, share)) * (stops.length - 1);
  const i = Math.min(stops.length - 2, Math.floor(at));
  const [a, b] = [channels(stops[i] ?? ""), channels(stops[i + 1] ?? "")];
  return `rgb(${a.map((c, k) => Math.round(c + (at - i) * ((b[k] ?? c) - c))).join(",")})`;
}

function channels(hex: string): number[] {
  const long = hex.length === 4 ? hex.slice(1).replace(/./g, "$&$&") : hex.slice(1);
  return [0, 2, 4].map((i) => parseInt(long.slice(i, i + 2), 16));
}

export function heatStops(): string[] {
  return Array.from({ length: STOPS }, (_, i) => token(`--heat-${i}`));
}

/** Returns the distance of labelled rows. */
export function labelEvery(rows: number, height: number): number {
  return Math.max(1, Math.ceil((rows * 18) / height));
}

export function drawHeat(ctx: CanvasRenderingContext2D, width: number, height: number, picture: HeatPicture): void {
  const box = heatBox(width, height);
  const { buckets, interval, step } = picture;
  const x = (time: number): number => box.left + ((time - interval.from) / (interval.to - interval.from)) * box.width;
  const rows = buckets.bounds.length;
  const rowHeight = box.height / Math.max(1, rows);
  const greatest = greatestCell(buckets);
  const stops = heatStops();
  const nothing = token("--ground");
  ctx.clearRect(0, 0, width, height);
  ctx.save();
  ctx.beginPath();
  ctx.rect(box.left, box.top, box.width, box.height);
  ctx.clip();
  buckets.times.forEach((time, column) => {
    const from = Math.round(x(time - step));
    const wide = Math.max(1, Math.round(x(time)) - from);
    for (let row = 0; row < rows; row++) {
      const value = buckets.cells[row]?.[column] ?? null;
      if (value === null) continue;
      ctx.fillStyle = value > 0 ? heatColour(heatShare(value, greatest), stops) : nothing;
      const bottom = Math.round(box.top + box.height - row * rowHeight);
      const top = Math.round(box.top + box.height - (row + 1) * rowHeight);
      ctx.fillRect(from, top, wide, bottom - top);
    }
  });
  if (picture.hover !== undefined) {
    ctx.fillStyle = token("--text");
    ctx.fillRect(Math.round(x(picture.hover)), box.top, 1, box.height);
  }
  ctx.restore();
  drawMarks(ctx, picture.marks, interval, box);
  drawAxes(ctx, box, picture, rowHeight, x);
}

function drawAxes(
  ctx: CanvasRenderingContext2D,
  box: HeatBox,
  { buckets, allBounds, interval, unit }: HeatPicture,
  rowHeight: number,
  x: (time: number) => number,
): void {
  ctx.fillStyle = token("--muted");
  ctx.font = `${token("--axis")} system-ui, sans-serif`;
  ctx.textAlign = "right";
  ctx.textBaseline = "middle";
  const rows = buckets.bounds.length;
  const every = labelEvery(rows, box.height);
  for (let edge = 0; edge <= rows; edge += every) {
    const bound = edge === 0 ? lowerBound(allBounds, buckets.bounds[0] ?? 0) : (buckets.bounds[edge - 1] ?? 0);
    const text = bound === Infinity ? "∞" : formatValue(bound, unit);
    ctx.fillText(text, box.left - 6, box.top + box.height - edge * rowHeight);
  }
  ctx.textAlign = "center";
  ctx.textBaseline = "top";
  const distance = timeDistance(interval.to - interval.from, box.width, 5.3 * parseFloat(token("--axis")));
  const first = Math.ceil(interval.from / distance) * distance;
  const splits: number[] = [];
  for (let at = first; at <= interval.to; at += distance) splits.push(at);
  timeLabels(splits, distance).forEach((label, i) => {
    const at = x(splits[i] ?? 0);
    if (at > box.left + 16 && at < box.left + box.width - 10) ctx.fillText(label.split("\n")[0] ?? "", at, box.top + box.height + 7);
  });
}

/** Returns the distance of time labels of `space` pixels in that width. */
export function timeDistance(seconds: number, width: number, space = 58): number {
  const wanted = (seconds * space) / width;
  return TIME_STEPS.find((s) => s >= wanted) ?? Math.ceil(wanted / 604_800) * 604_800;
}
