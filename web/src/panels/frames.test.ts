// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { Client } from "../api/client";
import { endAt, FrameLoader, type FrameRequest, newestMean } from "./frames";

const request = (to: number, workloads: string[] = []): FrameRequest => ({
  queries: [{ expr: "x{$workloads}", legend: "{{workload}}" }],
  interval: { from: to - 60, to },
  points: 240,
  filling: { workloads, scrapeInterval: 5, age: 1000 },
});

/** A client that returns the requested times as values, and records the queries. */
function echo(): { client: Client; asked: string[] } {
  const asked: string[] = [];
  const client = new Client({
    fetch: (input) => {
      const params = new URL(input as string, "http://x/").searchParams;
      const [start, end, step] = ["start", "end", "step"].map((key) => Number(params.get(key)));
      asked.push(`${start ?? 0}..${end ?? 0}/${step ?? 0}`);
      const values: [number, string][] = [];
      for (let t = start ?? 0; t <= (end ?? 0); t += step ?? 1) values.push([t, String(t)]);
      const data = { resultType: "matrix", result: [{ metric: { workload: "a" }, values }] };
      return Promise.resolve(new Response(JSON.stringify({ status: "success", data })));
    },
  });
  return { client, asked };
}

const { signal } = new AbortController();

describe("FrameLoader", () => {
  it("queries everything once, and then only the newest points", async () => {
    const { client, asked } = echo();
    const loader = new FrameLoader(client);
    await loader.load(request(1000), signal);
    const { frame } = await loader.load(request(1005), signal);
    expect(asked).toEqual(["940..1000/5", "990..1005/5"]);
    expect(frame.times).toEqual(Array.from({ length: 13 }, (_, i) => 945 + 5 * i));
    expect(frame.series[0]?.values).toEqual(frame.times);
  });

  it("queries everything again when the filter changes or time goes back", async () => {
    const { client, asked } = echo();
    const loader = new FrameLoader(client);
    await loader.load(request(1000), signal);
    await loader.load(request(1005, ["redis"]), signal);
    await loader.load(request(900, ["redis"]), signal);
    expect(asked).toEqual(["940..1000/5", "945..1005/5", "840..900/5"]);
  });

  it("does not join what lies far apart", async () => {
    const { client } = echo();
    const loader = new FrameLoader(client);
    await loader.load(request(1000), signal);
    const { frame } = await loader.load(request(5000), signal);
    expect(frame.times[0]).toBe(4940);
    expect(frame.times).toHaveLength(13);
  });

  it("draws the newest point at the clock, not ahead of it", async () => {
    const { client } = echo();
    const { frame } = await new FrameLoader(client).load(request(1002), signal);
    expect(frame.times.slice(-2)).toEqual([1000, 1002]);
    expect(frame.series[0]?.values.at(-1)).toBe(1005);
  });
});

describe("where points are further apart than scrapes", () => {
  const young = (newest: boolean): FrameRequest => ({
    queries: [{ expr: "$rate(x{$workloads}[$window])", legend: "{{workload}}" }],
    interval: { from: 86_000, to: 690_700 },
    points: 240,
    filling: { workloads: [], scrapeInterval: 5, age: 400 },
    newest,
  });

  it("also queries the end of the interval, so that a week has a point in its first hour", async () => {
    const { client, asked } = echo();
    const { frame } = await new FrameLoader(client).load(young(true), signal);
    expect(asked).toEqual(["82800..691200/3600", "690700..690700/3600"]);
    expect(frame.times.slice(-2)).toEqual([687_600, 690_700]);
    expect(frame.series[0]?.values.at(-1)).toBe(690_700);
  });

  it("does not where points are added up", async () => {
    const { client, asked } = echo();
    const { frame } = await new FrameLoader(client).load(young(false), signal);
    expect(asked).toEqual(["82800..691200/3600"]);
    expect(frame.times.at(-1)).toBe(687_600);
  });

  it("has no series without a value", async () => {
    const data = { resultType: "matrix", result: [{ metric: { workload: "a" }, values: [[82_800, "NaN"], [691_200, "1"]] }] };
    const client = new Client({ fetch: () => Promise.resolve(new Response(JSON.stringify({ status: "success", data }))) });
    expect((await new FrameLoader(client).load(young(false), signal)).frame.series).toEqual([]);
  });
});

describe("endAt", () => {
  it("leaves out a wide point that is not over", () => {
    const frame = { times: [0, 60, 120], series: [{ name: "a", values: [1, 2, 3] }] };
    expect(endAt(frame, 90, 60, 5)).toEqual({ times: [0, 60], series: [{ name: "a", values: [1, 2] }] });
  });
});

describe("newestMean", () => {
  const dense = { times: [0, 20, 40, 60, 80, 100], series: [] };
  it.each<[string, (number | null)[], number | null]>([
    ["of the minute", [100, 100, 100, 1, 2, 3], 2],
    ["skips gaps", [100, 100, 100, 1, null, 3], 2],
    ["is absent when all of the minute is", [100, 100, 100, null, null, null], null],
  ])("%s", (_, values, want) => {
    expect(newestMean(dense, values)).toBe(want);
  });

  it("is the newest point where points are further apart", () => {
    const wide = { times: [0, 600, 1200], series: [] };
    expect(newestMean(wide, [1, 2, 3])).toBe(3);
    expect(newestMean(wide, [1, 2, null])).toBe(2);
  });
});
