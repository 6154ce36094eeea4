// SPDX-License-Identifier: Apache-2.0

// Time ranges and the grid of points that a range is drawn on. All times are
// Unix seconds; nothing here reads the clock.

export interface Interval {
  from: number;
  to: number;
}

export interface RelativeRange {
  id: string;
  seconds: number;
  label: string;
}

export const RANGES: readonly RelativeRange[] = [
  { id: "1m", seconds: 60, label: "Last minute" },
  { id: "5m", seconds: 300, label: "Last 5 minutes" },
  { id: "15m", seconds: 900, label: "Last 15 minutes" },
  { id: "1h", seconds: 3600, label: "Last hour" },
  { id: "6h", seconds: 21_600, label: "Last 6 hours" },
  { id: "24h", seconds: 86_400, label: "Last 24 hours" },
  { id: "7d", seconds: 604_800, label: "Last 7 days" },
];

export const DEFAULT_RANGE = "5m";

export function findRange(id: string): RelativeRange | undefined {
  return RANGES.find((range) => range.id === id);
}

const NICE_STEPS = [
  1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 14_400, 43_200, 86_400,
];

/**
 * The distance between two points of a chart: a round number of seconds that
 * gives at most `points` points and never falls below the scrape interval.
 */
export function stepFor(seconds: number, scrapeInterval: number, points: number): number {
  const wanted = Math.max(seconds / points, scrapeInterval);
  return NICE_STEPS.find((step) => step >= wanted) ?? Math.ceil(wanted / 86_400) * 86_400;
}

/**
 * Aligns an interval to whole steps, so that the same moment is always the
 * same point and a live chart can be extended by its newest points alone.
 */
export function alignToGrid(interval: Interval, step: number): Interval {
  return {
    from: Math.floor(interval.from / step) * step,
    to: Math.ceil(interval.to / step) * step,
  };
}

/** Reads a time of the URL or of an input: Unix seconds or ISO 8601. */
export function parseTime(text: string): number | undefined {
  const trimmed = text.trim();
  if (/^\d{9,11}(\.\d+)?$/.test(trimmed)) return Number(trimmed);
  if (!/^\d{4}-\d{2}-\d{2}/.test(trimmed)) return undefined;
  const ms = Date.parse(trimmed);
  return Number.isNaN(ms) ? undefined : ms / 1000;
}

/** Writes a time for the URL: readable, UTC, whole seconds. */
export function formatUrlTime(seconds: number): string {
  return new Date(Math.round(seconds) * 1000).toISOString().replace(".000Z", "Z");
}

/** Writes a time for `<input type="datetime-local">`, in the zone of the browser. */
export function formatInputTime(seconds: number): string {
  const local = new Date(Math.round(seconds) * 1000);
  const shifted = new Date(local.getTime() - local.getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 19);
}

const two = (n: number): string => String(n).padStart(2, "0");

/** The clock time, in the zone of the browser: 13:24:05. */
export function formatClock(seconds: number): string {
  const at = new Date(seconds * 1000);
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** Day and clock time: 20 Nov 13:24:05. */
export function formatMoment(seconds: number): string {
  const at = new Date(seconds * 1000);
  const month = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  return `${at.getDate()} ${month[at.getMonth()] ?? ""} ${formatClock(seconds)}`;
}

/** A length of time as a person says it: 5 s, 2 min, 3 h, 7 d. */
export function formatSpan(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}
