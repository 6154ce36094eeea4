// SPDX-License-Identifier: Apache-2.0

// Loads the series of a chart and keeps them: a live chart asks only for its
// newest points, any other change asks for all of them. Knows no component.
import type { Client } from "../api/client";
import { fillTemplate, type Filling, isDense, seriesName } from "../lib/promql";
import { extendFrame, type Frame, type RawSeries, toFrame } from "../lib/series";
import { alignToGrid, type Interval, stepFor } from "../lib/time";
import type { Query } from "./types";

export interface FrameRequest {
  queries: readonly Query[];
  interval: Interval;
  /** Points wanted at most. */
  points: number;
  filling: Omit<Filling, "step">;
  /**
   * Whether the end of the interval is a point of its own where the last of the grid lies ahead of it. Not where points
   * are added up: its window lies over that of the one before.
   */
  newest?: boolean;
}

export interface LoadedFrame {
  frame: Frame;
  step: number;
}

const NOTHING: Frame = { times: [], series: [] };

/** Points at the end of a live chart that are asked for again. */
const OVERLAP = 2;

/** The identity of what is drawn; the same key on a later interval is an extension. */
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
 * The grid's last point may lie ahead of the clock. With points as dense as
 * scrapes its value is that of the newest scrape: it is drawn at the end of
 * the interval. With wider points it would be half a window: it is left out.
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

/** The mean of the values of the newest minute, or of the newest point if points are further apart. */
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
