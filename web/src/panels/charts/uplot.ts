// SPDX-License-Identifier: Apache-2.0

// The options of every uPlot on the page: axes, units, colours from the design tokens, a cursor across all charts,
// and selecting a time range by dragging.
import type uPlot from "uplot";
import { type Slot, slotVariable } from "../../lib/colour";
import { token } from "../../lib/theme";
import { formatClock, formatMoment, zoned } from "../../lib/time";
import { formatValue, type Unit } from "../../lib/units";
import type { Mark } from "../marks";
import type { Threshold } from "../types";
import { drawMarks } from "./marks-draw";

interface ChartShape {
  names: readonly string[];
  slots: ReadonlyMap<string, Slot>;
  unit: Unit;
  stacked: boolean;
  /** A logarithmic scale of values. */
  log: boolean;
  thresholds: readonly Threshold[];
}

export interface ChartEvents {
  /** Called with the point under the cursor (undefined when it leaves), and whether it is this chart's own cursor. */
  onCursor: (index: number | undefined, own: boolean) => void;
  marks: () => readonly Mark[];
  /** The intervals of each series at each point, if its values are estimates. */
  bands: () => readonly (Band | undefined)[];
  onZoom: (from: number, to: number) => void;
  /** The shown interval. The axis covers it even without data. */
  interval: () => { from: number; to: number };
}

type Band = readonly (readonly [number, number] | null)[];

const SYNC_KEY = "teescope";

function seriesColour(slots: ReadonlyMap<string, Slot>, name: string): string {
  return token(slotVariable(slots.get(name) ?? "rest"));
}

/** Distances of time labels, seconds. */
export const TIME_STEPS = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800,
];
const BINARY_STEPS = Array.from({ length: 50 }, (_, i) => 2 ** i);

/** Formats the labels of the time axis with the precision of their distance. */
export function timeLabels(splits: readonly number[], distance: number): string[] {
  return splits.map((at, i) => {
    const clock = formatClock(at);
    const text = distance < 60 ? clock : clock.slice(0, 5);
    if (distance < 86_400 && clock !== "00:00:00") return text;
    const day = formatMoment(at).slice(0, -9);
    return distance >= 86_400 || i === 0 ? day : `${text}\n${day}`;
  });
}

/** Returns the range of values, from zero to slightly above the maximum. */
export function valueRange(greatest: number | null, unit: Unit): [number, number] {
  if (greatest === null || !Number.isFinite(greatest) || greatest <= 0) return [0, 1];
  if (unit === "ratio") return [0, Math.min(1, greatest * 1.15)];
  return [0, greatest * 1.12];
}

/** Returns the greatest value with the upper ends of the bands. */
function withBands(greatest: number | null, bands: readonly (Band | undefined)[]): number | null {
  return bands.reduce<number | null>(
    (most, band) => (band ?? []).reduce<number | null>((m, point) => (point ? Math.max(m ?? 0, point[1]) : m), most),
    greatest,
  );
}

/** uPlot exports these as an enum of its types only, which does not exist at run time. */
const LOGARITHMIC: unknown = 3;

/** Maximum number of decades of a logarithmic scale. */
const MOST_DECADES = 6;

/** Returns the logarithmic range of values: whole decades around those above zero. */
export function logRange(values: readonly (readonly (number | null)[])[]): [number, number] {
  let [least, greatest] = [Infinity, 0];
  for (const series of values) {
    for (const value of series) {
      if (value === null || value <= 0) continue;
      least = Math.min(least, value);
      greatest = Math.max(greatest, value);
    }
  }
  if (greatest === 0) return [0.1, 1];
  const top = Math.floor(Math.log10(greatest)) + 1;
  return [10 ** Math.max(Math.floor(Math.log10(least)), top - MOST_DECADES), 10 ** top];
}

/** Raises values to the lower end of a logarithmic scale, zero included. Null stays null. */
export function raiseToFoot(values: readonly (number | null)[], foot: number): (number | null)[] {
  return values.map((value) => (value === null ? null : Math.max(value, foot)));
}

/** Reports whether a point has no neighbours, so that no line would show it. */
export function isLonely(values: ArrayLike<number | null | undefined>, i: number): boolean {
  const there = (k: number): boolean => values[k] !== null && values[k] !== undefined;
  return there(i) && !there(i - 1) && !there(i + 1);
}

/**
 * Reports whether an event of the pointer reaches the other charts. A drag does not: each chart would set the interval,
 * rounded at another pixel, and each would add an entry to the history.
 */
function isShared(type: string): boolean {
  return type !== "mousedown" && type !== "mouseup";
}

export function chartOptions(shape: ChartShape, events: ChartEvents, width: number, height: number): uPlot.Options {
  const line = token("--line");
  const letters = parseFloat(token("--axis"));
  const axis = { stroke: token("--muted"), font: `${letters}px system-ui, sans-serif`, ticks: { show: false } };
  return {
    width,
    height,
    padding: [8, 18, 0, 0],
    legend: { show: false },
    tzDate: zoned,
    scales: {
      x: {
        time: true,
        range: () => {
          const { from, to } = events.interval();
          return [from, to];
        },
      },
      y: shape.log
        ? { distr: LOGARITHMIC as uPlot.Scale.Distr, log: 10, range: (u) => logRange(u.data.slice(1) as (number | null)[][]) }
        : { range: (_, __, max) => valueRange(withBands(max, events.bands()), shape.unit) },
    },
    axes: [
      {
        ...axis,
        size: 26,
        space: 5.3 * letters,
        incrs: TIME_STEPS,
        grid: { show: false },
        values: (_, splits, __, ___, distance) => timeLabels(splits, distance),
      },
      {
        ...axis,
        size: (_, values) => Math.max(34, ...(values as string[] | null ?? []).map((v) => v.length * 0.565 * letters + 12)),
        space: 28,
        gap: 4,
        grid: { stroke: line, width: 1 },
        ...(!shape.log && (shape.unit === "bytes" || shape.unit === "bytes_per_second") ? { incrs: BINARY_STEPS } : {}),
        // A logarithmic axis gives null for labels without space.
        values: (_, splits) => splits.map((value: number | null) => (value === null ? "" : value === 0 ? "0" : formatValue(value, shape.unit))),
      },
    ],
    series: [{}, ...shape.names.map((name) => seriesOptions(name, shape))],
    cursor: {
      sync: { key: SYNC_KEY, setSeries: false, filters: { pub: isShared, sub: isShared } },
      drag: { x: true, y: false, setScale: false },
      points: { size: 6 },
      y: false,
    },
    hooks: {
      drawAxes: [
        (u) => {
          drawBands(u, events.bands(), shape);
        },
      ],
      setCursor: [
        (u) => {
          events.onCursor(u.cursor.idx ?? undefined, (u.cursor.event ?? null) !== null);
        },
      ],
      draw: [
        (u) => {
          drawThresholds(u, shape.thresholds);
          drawMarks(u.ctx, events.marks(), events.interval(), u.bbox, pixels(u));
        },
      ],
      setSelect: [
        (u) => {
          if (u.select.width < 8) return;
          events.onZoom(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"));
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        },
      ],
    },
  };
}

/** Returns the number of canvas pixels per CSS pixel. */
function pixels(u: uPlot): number {
  return u.ctx.canvas.width / u.width;
}

/** Draws the intervals of estimates behind the lines. A point without an interval interrupts a band. */
function drawBands(u: uPlot, bands: readonly (Band | undefined)[], shape: ChartShape): void {
  const { ctx, bbox } = u;
  const times = u.data[0];
  const y = (value: number): number => Math.min(Math.max(u.valToPos(value, "y", true), bbox.top), bbox.top + bbox.height);
  ctx.save();
  ctx.globalAlpha = 0.22;
  bands.forEach((band, i) => {
    if (!band) return;
    ctx.fillStyle = seriesColour(shape.slots, shape.names[i] ?? "");
    for (const [from, to] of runs(band)) {
      ctx.beginPath();
      for (let k = from; k < to; k++) ctx.lineTo(u.valToPos(times[k] ?? 0, "x", true), y(band[k]?.[1] ?? 0));
      for (let k = to - 1; k >= from; k--) ctx.lineTo(u.valToPos(times[k] ?? 0, "x", true), y(band[k]?.[0] ?? 0));
      ctx.fill();
    }
  });
  ctx.restore();
}

/** Returns the runs of points with an interval: first, and one after the last. */
export function runs(band: Band): [number, number][] {
  const found: [number, number][] = [];
  let from = 0;
  for (let i = 0; i <= band.length; i++) {
    if ((band[i] ?? null) !== null) continue;
    if (i > from) found.push([from, i]);
    from = i + 1;
  }
  return found;
}

/** Draws a thin line at each threshold within the scale. */
function drawThresholds(u: uPlot, thresholds: readonly Threshold[]): void {
  const { ctx, bbox } = u;
  const ratio = pixels(u);
  for (const { at, level } of thresholds) {
    const y = Math.round(u.valToPos(at, "y", true)) + 0.5;
    if (y < bbox.top || y > bbox.top + bbox.height) continue;
    ctx.save();
    ctx.strokeStyle = token(level === "bad" ? "--bad" : "--warn");
    ctx.lineWidth = ratio;
    ctx.setLineDash([6 * ratio, 3 * ratio]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    ctx.restore();
  }
}

function seriesOptions(name: string, shape: ChartShape): uPlot.Series {
  const colour = seriesColour(shape.slots, name);
  return {
    label: name,
    stroke: colour,
    width: shape.stacked ? 1 : 1.5,
    ...(shape.stacked ? { fill: mix(colour, token("--surface"), 0.72) } : {}),
    spanGaps: false,
    points: {
      show: true,
      size: 5,
      fill: colour,
      filter: (u, seriesIndex) => {
        const values = u.data[seriesIndex] ?? [];
        return Array.from(values, (_, i) => i).filter((i) => isLonely(values, i));
      },
    },
  };
}

/**
 * Mixes a colour with the ground for the fill of a stacked band. The fill is opaque, so that bands behind it do not
 * tint it. Colours are #rrggbb, or #rgb where the minifier shortened them.
 */
export function mix(colour: string, ground: string, share: number): string {
  const channel = (hex: string, i: number): number =>
    hex.length === 4 ? 17 * parseInt(hex.slice(1 + i, 2 + i), 16) : parseInt(hex.slice(1 + 2 * i, 3 + 2 * i), 16);
  const mixed = [0, 1, 2].map((i) => Math.round(share * channel(colour, i) + (1 - share) * channel(ground, i)));
  return `rgb(${mixed.join(",")})`;
}
