// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import type { RangeSeries } from "../api/types";
import { setZone } from "../lib/time";
import { foldFlags, letter } from "./charts/marks-draw";
import { beginnings, type Mark, MARK_KINDS, MARK_QUERIES, type MarkAnswers, type MarkKind, marksNear, MOST_MARKS, pairMarks, sayMarks, toMarks } from "./marks";

const series = (metric: Record<string, string>, ...values: [number, number][]): RangeSeries => ({ metric, values });
const none: MarkAnswers = { findings: [], alerts: [], deployments: [], restarts: [], containers: [], agents: [] };
const everything = { workloads: [] };
const interval = { from: 1000, to: 1100 };
const mark = (kind: MarkKind, at: number, text = ""): Mark => ({ kind, at, text });

beforeAll(() => {
  setZone("utc");
});

describe("toMarks", () => {
  it("takes moments from values, once each, and only those of the interval", () => {
    const answers = {
      ...none,
      findings: [series({ rule: "syscall-storm", workload: "redis" }, [1050, 1040], [1060, 1040]), series({ rule: "old", workload: "redis" }, [1050, 300])],
      containers: [series({ name: "web", pod: "", container: "" }, [1000, 900], [1010, 900], [1020, 1019])],
      agents: [series({ instance: "host" }, [1090, 1085])],
    };
    expect(toMarks(answers, everything, interval, 10).map((m) => [m.kind, m.at, m.text])).toEqual([
      ["finding", 1040, "Finding syscall-storm at redis, first seen"],
      ["start", 1085, "teescope on host started"],
      ["start", 1019, "Container web started"],
    ]);
  });

  it("distinguishes deployments from restarts, with subject and machine", () => {
    const redis = { instance: "host", workload: "redis-server" };
    const shop = { instance: "host", workload: "0123456789ab", pod: "shop-x2k9p", container: "app", image: "shop:2" };
    const answers = {
      ...none,
      deployments: [series(redis, [1050, 1041.5]), series(shop, [1050, 1042])],
      restarts: [series(redis, [1010, 1001], [1060, 1055]), series({ instance: "host", workload: "c0ffee", container: "c0ffee", name: "web" }, [1050, 1043])],
    };
    expect(toMarks(answers, everything, interval, 10).map((m) => [m.kind, m.at, m.text])).toEqual([
      ["deployment", 1042, "Container shop-x2k9p/app on host runs another image than before: shop:2"],
      ["deployment", 1041.5, "redis-server on host runs another program file than before"],
      ["restart", 1055, "redis-server on host was restarted"],
      ["restart", 1043, "Container web on host was restarted"],
      ["restart", 1001, "redis-server on host was restarted"],
    ]);
  });

  it("leaves out marks of workloads outside the filters, and keeps marks without a workload", () => {
    const alert = (workload: string): RangeSeries => series({ alertname: `A${workload}`, workload }, [1050, 1]);
    const answers = { ...none, alerts: [alert("redis"), alert("nginx"), alert("")] };
    const texts = (chosen: Parameters<typeof toMarks>[1]): string[] => toMarks(answers, chosen, interval, 10).map((m) => m.text);
    const want = ["Alert A fires", "Alert Aredis fires for redis"];
    expect(texts({ workloads: ["redis"] })).toEqual(want);
    expect(texts({ workloads: [], filters: [{ kind: "workload", text: "red.*", regex: true }] })).toEqual(want);
    expect(texts({ workloads: [], mapped: ["redis"] })).toEqual(want);
    // The query has the machine; the answer may not have it.
    expect(texts({ workloads: ["redis"], filters: [{ kind: "node", text: "host", regex: false }] })).toEqual(want);
  });

  it("is bounded, and keeps alerts and deployments before starts", () => {
    const starts = Array.from({ length: 100 }, (_, i) => series({ name: `c${i}` }, [1050, 1000 + i]));
    const answers = { ...none, containers: starts, alerts: [series({ alertname: "A" }, [1020, 1])], deployments: [series({ workload: "w" }, [1020, 1003])] };
    const marks = toMarks(answers, everything, interval, 10);
    expect(marks).toHaveLength(MOST_MARKS);
    expect(marks.slice(0, 3).map((m) => m.at)).toEqual([1020, 1003, 1099]);
  });
});

describe("pairMarks", () => {
  const a = [mark("restart", 1010, "x"), mark("start", 1020, "agent")];

  it("puts B on the time of A, and shows its own time", () => {
    expect(pairMarks(a, [mark("deployment", 410, "y")], 600).map((m) => [m.kind, m.at, m.text])).toEqual([
      ["deployment", 1010, "B: y, 1 Jan 00:06:50"],
      ["restart", 1010, "A: x"],
      ["start", 1020, "A: agent"],
    ]);
  });

  it("has once what concerns both at the same time", () => {
    expect(pairMarks(a, [mark("start", 1020, "agent")], 0).map((m) => m.text)).toEqual(["A: x", "A and B: agent"]);
  });
});

it("an alert begins where its series does, not where the interval does", () => {
  expect(beginnings(series({}, [1000, 1], [1010, 1]), 1000, 10)).toEqual([]);
  expect(beginnings(series({}, [1030, 1], [1040, 1], [1080, 1]), 1000, 10)).toEqual([1030, 1080]);
});

it("finds marks near a moment, and lists the first ones", () => {
  const marks = [1010, 1050].map((at) => mark("alert", at));
  expect(marksNear(marks, 1012, 5).map((m) => m.at)).toEqual([1010]);
  const many = Array.from({ length: 5 }, (_, i) => mark("start", 1000 + i, `s${i}`));
  expect(sayMarks(many)).toBe("00:16:40 s0 · 00:16:41 s1 · 00:16:42 s2 · 2 more");
  expect(sayMarks([])).toBe("");
});

describe("flags", () => {
  it("have a letter of their own for each kind", () => {
    expect(new Set(MARK_KINDS.map(letter)).size).toBe(MARK_KINDS.length);
  });

  it("are folded where they would be one over the other, with their number", () => {
    const kinds: MarkKind[] = ["alert", "restart", "restart", "start", "deployment", "restart"];
    const folded = foldFlags(kinds.map((kind) => mark(kind, 0)), [100, 40, 45, 108, 200, 300], 16);
    expect(folded).toEqual([
      { position: 40, kind: "restart", text: "R2" },
      { position: 100, kind: "alert", text: "2" },
      { position: 200, kind: "deployment", text: "D" },
      { position: 300, kind: "restart", text: "R" },
    ]);
    expect(foldFlags([], [])).toEqual([]);
  });
});

it("uses the same queries as Grafana's annotations", () => {
  const files = new URL("../../../deploy/grafana/dashboards/", import.meta.url);
  const { annotations } = JSON.parse(readFileSync(new URL("teescope-overview.json", files), "utf8")) as { annotations: { list: { expr: string }[] } };
  const grafana = annotations.list.map(({ expr }) => expr.replace(/^1000 \* /, ""));
  const filled = Object.values(MARK_QUERIES).map((query) =>
    query
      .replace("$containers", 'and on (instance, id) teescope_container_info{$workloads}')
      .replaceAll("$workloads", 'workload=~"$workload",workload!="idle",$nodes')
      .replaceAll("$nodes", 'instance=~"$instance"'),
  );
  expect(grafana.sort()).toEqual(filled.sort());
});
