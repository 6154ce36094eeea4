// SPDX-License-Identifier: Apache-2.0

// The chosen part of a profile: in the address it is a thread and a span of time, in the picture a row and columns.
import type { ThreadTimes } from "../../api/profiles";
import type { ProfilePart } from "../../lib/page-params";

/** A span of buckets, the end excluded, and a row or -1 for all threads. */
export interface Chosen {
  row: number;
  begin: number;
  end: number;
}

export interface Cell {
  row: number;
  bucket: number;
}

/** The cell of the keyboard in a picture, which may have fewer threads and columns than the one before it. */
export function within({ threads, buckets }: ThreadTimes, { row, bucket }: Cell): Cell {
  return { row: Math.min(row, threads.length - 1), bucket: Math.min(bucket, buckets - 1) };
}

/** Whether the values are numbers of events and not times. */
export const isCounted = ({ unit }: ThreadTimes): boolean => unit === "count";

/** The value that fills a column: the length of its bucket, or the largest number of events of a thread in a bucket. */
export function fullColumn(times: ThreadTimes): number {
  if (!isCounted(times)) return times.width * 1e9;
  let most = 1;
  for (const { pieces } of times.threads) {
    let [last, sum] = [-1, 0];
    for (const [bucket, , value] of pieces) {
      sum = bucket === last ? sum + value : value;
      last = bucket;
      most = Math.max(most, sum);
    }
  }
  return most;
}

export function partOf(times: ThreadTimes, { row, begin, end }: Chosen): ProfilePart {
  const { pid = "", tid = "" } = times.threads[row] ?? {};
  return { pid, tid, from: times.begin + begin * times.width, to: times.begin + end * times.width };
}

/** Where the part is in a picture; undefined if it is outside of it. */
export function chosenIn({ threads, begin, width, buckets }: ThreadTimes, { pid, tid, from, to }: ProfilePart): Chosen | undefined {
  const row = threads.findIndex((t) => t.tid === tid && t.pid === pid);
  const [first, end] = [Math.max(Math.round((from - begin) / width), 0), Math.min(Math.round((to - begin) / width), buckets)];
  return first < end && (tid === "" || row >= 0) ? { row: tid === "" ? -1 : row, begin: first, end } : undefined;
}
