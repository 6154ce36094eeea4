// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { ThreadTimes } from "../../api/profiles";
import { parseView, formatView } from "../../lib/url";
import { type Chosen, chosenIn, fullColumn, partOf, within } from "./part";

const thread = (pid: string, tid: string): ThreadTimes["threads"][number] => ({ pid, tid, process: "redis-server", thread: "", pieces: [] });
const times: ThreadTimes = { begin: 1_700_000_000.123, width: 0.5, buckets: 120, states: [], threads: [thread("7", "8"), thread("7", "9")], left_out: 0, untimed: 0, unit: "nanoseconds" };

describe("the chosen part of a profile", () => {
  it.each<Chosen>([{ row: 1, begin: 3, end: 7 }, { row: -1, begin: 0, end: 120 }])("is the same after an address: %o", (chosen) => {
    const view = { ...parseView("?page=profile&w=redis"), profile: { of: "redis", part: partOf(times, chosen) } };
    const { profile } = parseView(formatView(view).slice(1));
    expect(profile?.part && chosenIn(times, profile.part)).toEqual(chosen);
  });

  it("is cut to the picture, and is nowhere outside of it", () => {
    const part = partOf(times, { row: 0, begin: 100, end: 120 });
    expect(chosenIn({ ...times, begin: times.begin + 55 }, part)).toEqual({ row: 0, begin: 0, end: 10 });
    expect(chosenIn({ ...times, begin: times.begin + 60 }, part)).toBeUndefined();
    expect(chosenIn({ ...times, threads: [thread("6", "8")] }, part)).toBeUndefined(); // the thread of another process
  });

  it("is not that of another workload", () => {
    const view = { ...parseView("?page=profile&w=redis"), profile: { of: "redis", part: partOf(times, { row: 0, begin: 0, end: 1 }) } };
    expect(formatView({ ...view, workloads: ["nginx"] })).toBe("/?page=profile&w=nginx");
  });

  it("is dropped with another workload, and the event stays", () => {
    const view = { ...parseView("?page=profile&w=redis"), profile: { of: "redis", event: "ocalls", part: partOf(times, { row: 0, begin: 0, end: 1 }) } };
    expect(formatView({ ...view, workloads: ["nginx"] })).toBe("/?page=profile&w=nginx&event=ocalls");
  });
});

describe("a full column", () => {
  it("has the length of its bucket", () => {
    expect(fullColumn(times)).toBe(5e8);
  });

  it("has the largest number of events of a thread in a bucket, of events without a time", () => {
    const counted: ThreadTimes = { ...times, unit: "count", threads: [
      { ...thread("7", "8"), pieces: [[0, 0, 3], [0, 1, 4], [1, 0, 6]] },
      { ...thread("7", "9"), pieces: [[0, 0, 5], [2, 1, 1]] },
    ] };
    expect(fullColumn(counted)).toBe(7);
    expect(fullColumn({ ...counted, threads: [] })).toBe(1);
  });
});

it("keeps the keyboard within the threads and columns of a live page", () => {
  expect(within(times, { row: 1, bucket: 119 })).toEqual({ row: 1, bucket: 119 });
  expect(within({ ...times, threads: [thread("7", "8")], buckets: 60 }, { row: 1, bucket: 119 })).toEqual({ row: 0, bucket: 59 });
});
