// SPDX-License-Identifier: Apache-2.0
import { expect, it } from "vitest";
import { threads } from "../api/threads";
import { crossingRows, describePair } from "./boundary-rows";

const answer = (at: string, scale: number, source = "vdso_breakpoint") =>
  threads(
    {
      time: at,
      list: [
        { pid: 1, tid: 1, name: "main", started_seconds: 1, crossings: { eenter: 10 * scale, eexit: 10 * scale, aex: scale, source } },
        { pid: 1, tid: 2, name: "worker", started_seconds: 2, crossings: { eenter: 40 * scale, eexit: 40 * scale, source } },
        { pid: 1, tid: 3, name: "other", started_seconds: 3 },
      ],
      process_crossings: [{ pid: 1, eenter: 50 * scale, eexit: 50 * scale, source }],
      pairs: [{ kind: "next_ocall", from: "read", to: "write", n: 200, of: 300, mean_seconds: 2e-6, advice: "merge" }],
    },
    "answer",
  );

it("computes rates of processes and threads from two answers", () => {
  const rows = crossingRows(answer("2026-01-01T00:00:00Z", 1), answer("2026-01-01T00:00:10Z", 3));
  expect(rows.map(({ id, eenter, eexit, aex }) => [id, eenter, eexit, aex])).toEqual([
    ["process 1", 10, 10, undefined],
    ["thread 2", 8, 8, undefined],
    ["thread 1", 2, 2, 0.2],
  ]);
});

it("has no rate from one answer, of another source, and of counters that fell", () => {
  const now = answer("2026-01-01T00:00:10Z", 3);
  for (const before of [undefined, answer("2026-01-01T00:00:00Z", 1, "sdk_uprobe"), answer("2026-01-01T00:00:00Z", 9)]) {
    expect(crossingRows(before, now).every((r) => r.eenter === undefined && r.eexit === undefined && r.aex === undefined)).toBe(true);
  }
});

it("says what a pair is, also one of a newer agent", () => {
  const [pair] = answer("2026-01-01T00:00:00Z", 1).pairs;
  if (!pair) throw new Error("there is no pair");
  expect(describePair(pair)).toEqual({ what: "read, then write", advice: "make one call of both (merge)" });
  expect(describePair({ ...pair, kind: "new", advice: "wait" })).toEqual({ what: "new: read, write", advice: "wait" });
  expect(describePair({ ...pair, kind: "ocall_in_ecall", advice: "" })).toEqual({ what: "write after the beginning of read", advice: "" });
});

it("takes an answer without crossings", () => {
  const now = threads({ time: "2026-01-01T00:00:00Z", list: [{ pid: 1, tid: 1, name: "a", started_seconds: 1 }] }, "answer");
  expect(crossingRows(undefined, now)).toEqual([]);
  expect(now.pairs).toEqual([]);
});
