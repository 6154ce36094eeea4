// SPDX-License-Identifier: Apache-2.0

// Loads the series of a chart and keeps them. A live chart queries only its newest points; any other change queries
// all. It is independent of components.
import type { Client } from "../api/client";
import { fillTemplate, type Filling, isDense, seriesName } from "../lib/promql";
import { extendFrame, type Frame, type RawSeries, toFrame } from "../lib/series";
import { alignToGrid, type Interval, stepFor } from "../lib/time";
import type { Query } from "./types";

export interface FrameRequest {
  queries: readonly Query[];
  interval: Interval;
  /** Maximum number of points. */
  points: number;
  filling: Omit<Filling, "step">;
  /**
   * Whether the end of the interval gets a point of its own where the last point of the grid lies after it. False
   * where points are added up, because its window overlaps the previous one.
   */
  newest?: boolean;
}

export interface LoadedFrame {
  frame: Frame;
  step: number;
}

const NOTHING: Frame = { times: [], series: [] };

/** Number of points at the end of a live chart that are queried again. */
const OVERLAP = 2;

/** Identifies what is drawn. The same key with a later interval extends the chart. */
export function frameKey(request: FrameRequest): string {
  const filling = { ...request.filling, step: requestStep(request) };
  return request.queries.map((q) => fillTemplate(q.expr, filling)).join("\n") + `\n${filling.step}${filling.several === true ? " by node" : ""}`;
}

function requestStep(request: FrameRequest): number {
  const { from, to } = request.interval;
  return stepFor(to - from, request.filling.scrapeInterval, request.points);
}

export class FrameLoader {
  private readonly client: Client;
  private cached: { key: string; frame: Frame; from: number } | undefined;

  constructor(client: Client) {
    this.client = client;
  }

  async load(request: FrameRequest, signal: AbortSignal): Promise<LoadedFrame> {
    const step = requestStep(request);
    const key = frameKey(request);
    const { from, to } = alignToGrid(request.interval, step);
    const cached = this.cached?.key === key && this.cached.from <= from ? this.cached : undefined;
    const last = cached?.frame.times.at(-1);
    const since = last === undefined ? from : Math.min(Math.max(from, last - OVERLAP * step), to);
    const { filling, newest, interval } = request;
    const ahead = newest === true && to > interval.to && !isDense(step, filling.scrapeInterval);
    const [newer, end] = await Promise.all([
      this.fetch(request, since, to, step, signal),
      ahead ? this.fetch(request, interval.to, interval.to, step, signal) : NOTHING,
    ]);
    const frame = cached ? extendFrame(cached.frame, newer, from) : newer;
    this.cached = { key, frame, from };
    const drawn = endAt(frame, interval.to, step, filling.scrapeInterval);
    return { frame: extendFrame(drawn, end, from), step };
  }

  private async fetch(
    request: FrameRequest,
    from: number,
    to: number,
    step: number,
    signal: AbortSignal,
  ): Promise<Frame> {
    const filling = { ...request.filling, step };
    const answers = await Promise.all(
      request.queries.map(async (query): Promise<RawSeries[]> => {
        const matrix = await this.client.range(fillTemplate(query.expr, filling), from, to, step, signal);
        return matrix.map((s) => ({ name: seriesName(query.legend, s.metric, filling.several), points: s.values }));
      }),
    );
    return toFrame(answers.flat(), from, to, step);
  }
}

/**
 * Moves or drops the last point of the grid, which may lie in the future. With points as dense as scrapes it has the
 * value of the newest scrape, and is drawn at the end of the interval. With wider points it would be half a window,
 * and is dropped.
 */
export function endAt(frame: Frame, end: number, step: number, scrapeInterval: number): Frame {
  const last = frame.times.length - 1;
  const time = frame.times[last];
  if (time === undefined || time <= end) return frame;
  const before = frame.times.slice(0, last);
  if (isDense(step, scrapeInterval) && end > (before.at(-1) ?? -Infinity)) {
    return { times: [...before, end], series: frame.series };
  }
  return { times: before, series: frame.series.map((s) => ({ name: s.name, values: s.values.slice(0, last) })) };
}

/** Returns the mean of the last minute, or the newest point if points are further apart. */
export function newestMean(frame: Frame, values: readonly (number | null)[], seconds = 60): number | null {
  const end = frame.times.at(-1);
  if (end === undefined) return null;
  let sum = 0;
  let count = 0;
  for (let i = values.length - 1; i >= 0; i--) {
    const age = end - (frame.times[i] ?? 0);
    if (age >= seconds && i < values.length - 2) break;
    const value = values[i];
    if (value === null || value === undefined) continue;
    if (age >= seconds && count > 0) break;
    sum += value;
    count++;
  }
  return count === 0 ? null : sum / count;
}
