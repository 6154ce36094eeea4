// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { type Box, boxPlace, boxScale, boxTicks, metricTitle, metricUnit, toBoxes } from "./boxes";
import { WINDOWS } from "./dashboards/findings";
import type { Row } from "./table-rows";

/** A row of values in the order of the definition: five numbers with whiskers, outliers, n. */
const row = (metric: string, workload: string, ...values: (number | null)[]): Row => ({
  key: `${metric} ${workload}`,
  keys: [metric, workload],
  infos: [],
  cells: values.map((value) => ({ value })),
});

const box = (name: string, median: number, max = 2 * median): Box => ({
  name, min: 0, low: median / 2, q1: median / 2, median, q3: median, high: max, max, outliers: 0, n: 60,
});

describe("toBoxes", () => {
  it("groups, sorts by descending median, and keeps n and outliers", () => {
    const groups = toBoxes(
      [
        row("calls", "a", 1, 1, 2, 3, 4, 5, 9, 2, 60),
        row("calls", "b", 1, 1, 2, 30, 40, 50, 90, 0, 58),
        row("faults", "a", 0, 0, 0, 0, 0, 0, 0, 0, 60),
      ],
      WINDOWS.columns,
    );
    expect([...groups.keys()]).toEqual(["calls", "faults"]);
    expect(groups.get("calls")?.map((b) => b.name)).toEqual(["b", "a"]);
    expect(groups.get("calls")?.[1]).toEqual({ name: "a", min: 1, low: 1, q1: 2, median: 3, q3: 4, high: 5, max: 9, outliers: 2, n: 60 });
  });

  it("makes no box without quartiles, and no zero of a missing value", () => {
    const groups = toBoxes(
      [row("calls", "a", 1, null, null, 3, 4, null, 9, null, null), row("calls", "b", 1, null, 2, 3, 4, null, 9, null, null)],
      WINDOWS.columns,
    );
    expect(groups.get("calls")).toEqual([{ name: "b", min: 1, low: 1, q1: 2, median: 3, q3: 4, high: 9, max: 9, outliers: null, n: null }]);
  });
});

describe("the scale", () => {
  it("is logarithmic where medians are far apart, or when asked to be", () => {
    expect(boxScale([box("a", 10), box("b", 12)])).toEqual({ log: false, least: 0, greatest: 24 });
    expect(boxScale([box("a", 10_000), box("b", 12)]).log).toBe(true);
    expect(boxScale([box("a", 10_000), box("b", 12)], false).log).toBe(false);
  });

  it("places values within it, zero at its foot", () => {
    const scale = { log: true, least: 1, greatest: 100 };
    expect([0, 1, 10, 100, 1000].map((v) => boxPlace(v, scale))).toEqual([0, 0, 0.5, 1, 1]);
    expect(boxPlace(5, boxScale([]))).toBe(0);
    expect(boxPlace(1, { log: false, least: 0, greatest: 4 })).toBe(0.25);
  });

  it("is labelled at decades or quarters", () => {
    expect(boxTicks({ log: true, least: 1, greatest: 150 })).toEqual([1, 10, 100]);
    expect(boxTicks({ log: false, least: 0, greatest: 4 })).toEqual([0, 1, 2, 3, 4]);
  });
});

it("reads units and titles from the names of metrics", () => {
  expect(["sgx_resident_bytes", "teescope_cpu_seconds", "teescope_run_queue_wait_seconds", "teescope_syscalls"].map(metricUnit)).toEqual([
    "bytes",
    "cores",
    "seconds_per_second",
    "per_second",
  ]);
  expect(metricTitle("teescope_page_faults_user")).toBe("Page faults user");
});
