// SPDX-License-Identifier: Apache-2.0

// The options of every uPlot on the page: axes, units, colours from the design
// tokens, one cursor across all charts, and a drag that chooses a time range.
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
  /** The point under the cursor, or nothing when it left; and whether that cursor is this chart's own. */
  onCursor: (index: number | undefined, own: boolean) => void;
  marks: () => readonly Mark[];
  onZoom: (from: number, to: number) => void;
  /** The shown interval: the axis keeps it even where there is no data. */
  interval: () => { from: number; to: number };
}

const SYNC_KEY = "teescope";

function seriesColour(slots: ReadonlyMap<string, Slot>, name: string): string {
  return token(slotVariable(slots.get(name) ?? "rest"));
}

/** Distances of time labels, seconds. */
export const TIME_STEPS = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800,
];
const BINARY_STEPS = Array.from({ length: 50 }, (_, i) => 2 ** i);

/** Labels of the time axis: no finer than the distance between two of them. */
export function timeLabels(splits: readonly number[], distance: number): string[] {
  return splits.map((at, i) => {
    const clock = formatClock(at);
    const text = distance < 60 ? clock : clock.slice(0, 5);
    if (distance < 86_400 && clock !== "00:00:00") return text;
    const day = formatMoment(at).slice(0, -9);
    return distance >= 86_400 || i === 0 ? day : `${text}\n${day}`;
  });
}

/** The scale of values: from zero, with air above the greatest. */
export function valueRange(greatest: number | null, unit: Unit): [number, number] {
  if (greatest === null || !Number.isFinite(greatest) || greatest <= 0) return [0, 1];
  if (unit === "ratio") return [0, Math.min(1, greatest * 1.15)];
  return [0, greatest * 1.12];
}

/** uPlot's names for them are an enum of its types alone, of which nothing is left when the page runs. */
const LOGARITHMIC: unknown = 3;

/** Decades that a logarithmic scale spans at most. */
const MOST_DECADES = 6;

/** The logarithmic scale of some values: whole decades around those above zero. */
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

/** What a logarithmic scale can show: zero, and what is below its foot, lies at its foot. What is absent stays absent. */
export function raiseToFoot(values: readonly (number | null)[], foot: number): (number | null)[] {
  return values.map((value) => (value === null ? null : Math.max(value, foot)));
}

/** Whether a point stands alone, so that no line would show it. */
export function isLonely(values: ArrayLike<number | null | undefined>, i: number): boolean {
  const there = (k: number): boolean => values[k] !== null && values[k] !== undefined;
  return there(i) && !there(i - 1) && !there(i + 1);
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
        : { range: (_, __, max) => valueRange(max, shape.unit) },
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
        // A logarithmic axis gives null for what has no room.
        values: (_, splits) => splits.map((value: number | null) => (value === null ? "" : value === 0 ? "0" : formatValue(value, shape.unit))),
      },
    ],
    series: [{}, ...shape.names.map((name) => seriesOptions(name, shape))],
    cursor: {
      sync: { key: SYNC_KEY, setSeries: false },
      drag: { x: true, y: false, setScale: false },
      points: { size: 6 },
      y: false,
    },
    hooks: {
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

/** How many pixels of the canvas are one of CSS'. */
function pixels(u: uPlot): number {
  return u.ctx.canvas.width / u.width;
}

/** A thin line at each threshold that is within the scale. */
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
 * The fill below a line of a stack: the colour mixed with the ground, opaque,
 * so that the bands behind it do not tint it. Colours are written as #rrggbb,
 * or #rgb where the minifier found it shorter.
 */
export function mix(colour: string, ground: string, share: number): string {
  const channel = (hex: string, i: number): number =>
    hex.length === 4 ? 17 * parseInt(hex.slice(1 + i, 2 + i), 16) : parseInt(hex.slice(1 + 2 * i, 3 + 2 * i), 16);
  const mixed = [0, 1, 2].map((i) => Math.round(share * channel(colour, i) + (1 - share) * channel(ground, i)));
  return `rgb(${mixed.join(",")})`;
}
