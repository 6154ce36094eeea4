// SPDX-License-Identifier: Apache-2.0

// Time ranges and the grid of points of a chart. All times are Unix seconds. No function reads the clock. Times are
// formatted in the chosen zone.

export interface Interval {
  from: number;
  to: number;
}

interface RelativeRange {
  id: string;
  seconds: number;
  label: string;
}

export const RANGES: readonly RelativeRange[] = [
  { id: "1m", seconds: 60, label: "Last minute" },
  { id: "5m", seconds: 300, label: "Last 5 min" },
  { id: "15m", seconds: 900, label: "Last 15 min" },
  { id: "1h", seconds: 3600, label: "Last hour" },
  { id: "6h", seconds: 21_600, label: "Last 6 hours" },
  { id: "24h", seconds: 86_400, label: "Last 24 hours" },
  { id: "7d", seconds: 604_800, label: "Last 7 days" },
];

export const DEFAULT_RANGE = "5m";

/** Parses a Prometheus duration such as "5s", "1m30s" or "500ms" into seconds. */
export function parseDuration(text: string): number | undefined {
  const factors: Readonly<Record<string, number>> = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };
  if (!/^(\d+(ms|[smhdw]))+$/.test(text)) return undefined;
  let seconds = 0;
  for (const [, digits, unit] of text.matchAll(/(\d+)(ms|[smhdw])/g)) {
    seconds += Number(digits) * (factors[unit ?? ""] ?? 0);
  }
  return seconds > 0 ? seconds : undefined;
}

const SHORTEST_SECONDS = 10;
const LONGEST_SECONDS = 366 * 86_400;

/** Returns what is wrong with a typed range, or undefined. */
export function rangeProblem(text: string): string | undefined {
  const seconds = parseDuration(text);
  if (seconds === undefined) return "Write numbers with units: 90s, 90m, 6h, 2d, 1w or 1h30m.";
  if (seconds < SHORTEST_SECONDS) return `At least ${SHORTEST_SECONDS} seconds.`;
  return seconds > LONGEST_SECONDS ? "At most 366 days." : undefined;
}

/** Returns the range of an id: one of the list, or a typed duration. */
export function findRange(id: string): RelativeRange | undefined {
  const listed = RANGES.find((range) => range.id === id);
  if (listed || rangeProblem(id) !== undefined) return listed;
  const words = id.replace(/(\d)(ms|[smhdw])/g, (_, digit: string, unit: string) => `${digit} ${unit === "m" ? "min" : unit} `).trim();
  return { id, seconds: parseDuration(id) ?? 0, label: `Last ${words}` };
}

/** Distances between two points, seconds. */
export const STEPS = [
  1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 14_400, 43_200, 86_400,
];

/**
 * Returns the distance between two points of a chart: a round number of seconds that gives at most `points` points
 * and is not below the scrape interval.
 */
export function stepFor(seconds: number, scrapeInterval: number, points: number): number {
  const wanted = Math.max(seconds / points, scrapeInterval);
  return STEPS.find((step) => step >= wanted) ?? Math.ceil(wanted / 86_400) * 86_400;
}

/**
 * Aligns an interval to whole steps. The same moment is then always the same point, and a live chart can be extended
 * by its newest points only.
 */
export function alignToGrid(interval: Interval, step: number): Interval {
  return {
    from: Math.floor(interval.from / step) * step,
    to: Math.ceil(interval.to / step) * step,
  };
}

/** Parses a time of the URL or of an input: Unix seconds or ISO 8601. */
export function parseTime(text: string): number | undefined {
  const trimmed = text.trim();
  if (/^\d{9,11}(\.\d+)?$/.test(trimmed)) return Number(trimmed);
  if (!/^\d{4}-\d{2}-\d{2}/.test(trimmed)) return undefined;
  const ms = Date.parse(trimmed);
  return Number.isNaN(ms) ? undefined : ms / 1000;
}

/** Formats a time for the URL: readable, UTC, whole seconds. */
export function formatUrlTime(seconds: number): string {
  return new Date(Math.round(seconds) * 1000).toISOString().replace(".000Z", "Z");
}

export type Zone = "local" | "utc";

// The zone of all formatted and parsed times. It belongs to the user, as the browser's own zone does, and is
// therefore the only global state.
let zone: Zone = "local";

/** Sets the zone. The page uses the zone as a key, so that all times are rendered again. */
export function setZone(next: Zone): void {
  zone = next;
}

/** Returns a date whose local parts are those of the zone, for code that only knows local dates. */
export function zoned(seconds: number): Date {
  const at = new Date(seconds * 1000);
  return zone === "utc" ? new Date(at.getTime() + at.getTimezoneOffset() * 60_000) : at;
}

/** Returns the name of a zone at a moment, as an offset from UTC: UTC, UTC+1, UTC-3:30. */
export function zoneName(seconds: number, of: Zone = zone): string {
  const minutes = of === "utc" ? 0 : -new Date(seconds * 1000).getTimezoneOffset();
  if (minutes === 0) return "UTC";
  const rest = Math.abs(minutes) % 60;
  return `UTC${minutes < 0 ? "-" : "+"}${Math.floor(Math.abs(minutes) / 60)}${rest === 0 ? "" : `:${two(rest)}`}`;
}

const two = (n: number): string => String(n).padStart(2, "0");

/** Returns the parts of a time in the zone. */
function parts(seconds: number): { year: number; month: number; day: number; clock: string } {
  const at = new Date(seconds * 1000);
  const utc = zone === "utc";
  const clock = utc
    ? [at.getUTCHours(), at.getUTCMinutes(), at.getUTCSeconds()]
    : [at.getHours(), at.getMinutes(), at.getSeconds()];
  return {
    year: utc ? at.getUTCFullYear() : at.getFullYear(),
    month: utc ? at.getUTCMonth() : at.getMonth(),
    day: utc ? at.getUTCDate() : at.getDate(),
    clock: clock.map(two).join(":"),
  };
}

/** Formats a time for `<input type="datetime-local">`. */
export function formatInputTime(seconds: number): string {
  const { year, month, day, clock } = parts(Math.round(seconds));
  return `${year}-${two(month + 1)}-${two(day)}T${clock}`;
}

/** Parses the value of such an input. */
export function parseInputTime(text: string): number | undefined {
  return parseTime(zone === "utc" ? `${text}Z` : text);
}

/** Formats the clock time: 13:24:05. */
export function formatClock(seconds: number): string {
  return parts(seconds).clock;
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** Formats day and clock time: 20 Nov 13:24:05. */
export function formatMoment(seconds: number): string {
  const { day, month, clock } = parts(seconds);
  return `${day} ${MONTHS[month] ?? ""} ${clock}`;
}

/** Formats a duration: 5 s, 2 min, 3 h, 7 d. */
export function formatSpan(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}
