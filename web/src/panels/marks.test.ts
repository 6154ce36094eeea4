// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { RangeSeries } from "../api/types";
import { roomForFlags } from "./charts/marks-draw";
import { beginnings, MARK_QUERIES, type MarkAnswers, marksNear, MOST_MARKS, toMarks } from "./marks";

const series = (metric: Record<string, string>, ...values: [number, number][]): RangeSeries => ({ metric, values });
const none: MarkAnswers = { findings: [], alerts: [], containers: [], agents: [] };
const interval = { from: 1000, to: 1100 };

describe("toMarks", () => {
  it("takes moments from values, once each, and only those of the interval", () => {
    const answers = {
      ...none,
      findings: [series({ rule: "syscall-storm", workload: "redis" }, [1050, 1040], [1060, 1040]), series({ rule: "old", workload: "redis" }, [1050, 300])],
      containers: [series({ name: "web", pod: "", container: "" }, [1000, 900], [1010, 900], [1020, 1019])],
      agents: [series({ instance: "host" }, [1090, 1085])],
    };
    expect(toMarks(answers, [], interval, 10).map((m) => [m.kind, m.at, m.text])).toEqual([
      ["finding", 1040, "Finding syscall-storm at redis, first seen"],
      ["restart", 1085, "teescope on host started"],
      ["restart", 1019, "Container web started"],
    ]);
  });

  it("leaves out what belongs to workloads that are not shown, and keeps what belongs to none", () => {
    const alert = (workload: string): RangeSeries => series({ alertname: `A${workload}`, workload }, [1050, 1]);
    const marks = toMarks({ ...none, alerts: [alert("redis"), alert("nginx"), alert("")] }, ["redis"], interval, 10);
    expect(marks.map((m) => m.text)).toEqual(["Alert A fires", "Alert Aredis fires for redis"]);
  });

  it("is bounded, and keeps alerts before all else", () => {
    const starts = Array.from({ length: 100 }, (_, i) => series({ name: `c${i}` }, [1050, 1000 + i]));
    const marks = toMarks({ ...none, containers: starts, alerts: [series({ alertname: "A" }, [1020, 1])] }, [], interval, 10);
    expect(marks).toHaveLength(MOST_MARKS);
    expect(marks.slice(0, 2).map((m) => m.at)).toEqual([1020, 1099]);
  });
});

it("an alert begins where its series does, not where the interval does", () => {
  expect(beginnings(series({}, [1000, 1], [1010, 1]), 1000, 10)).toEqual([]);
  expect(beginnings(series({}, [1030, 1], [1040, 1], [1080, 1]), 1000, 10)).toEqual([1030, 1080]);
});

it("finds marks near a moment", () => {
  const marks = [1010, 1050].map((at) => ({ kind: "alert" as const, at, text: "" }));
  expect(marksNear(marks, 1012, 5).map((m) => m.at)).toEqual([1010]);
});

it("draws no flag over another", () => {
  expect(roomForFlags([100, 105, 113, 40], 13)).toEqual([true, false, true, true]);
});

it("asks what Grafana's annotations ask", () => {
  const grafana = readFileSync(new URL("../../../internal/dashboards/annotations.go", import.meta.url), "utf8");
  for (const query of Object.values(MARK_QUERIES)) expect(grafana).toContain(query);
});
