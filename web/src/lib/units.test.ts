// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { ABSENT, formatShare, formatValue, isAdditive, type Unit } from "./units";

describe("formatValue", () => {
  it.each<[number, Unit, string]>([
    [0, "per_second", "0/s"],
    [0.0004, "per_second", "<0.001/s"],
    [0.5, "per_second", "0.5/s"],
    [41_234, "per_second", "41.2k/s"],
    [999.6, "per_second", "1k/s"],
    [1_234_567, "count", "1.23M"],
    [1023, "bytes", "1023 B"],
    [1024, "bytes", "1 KiB"],
    [61 * 1024 * 1024, "bytes", "61 MiB"],
    [0, "bytes_per_second", "0 B/s"],
    [2.5 * 1024 * 1024, "bytes_per_second", "2.5 MiB/s"],
    [0, "seconds", "0 s"],
    [70e-9, "seconds", "70 ns"],
    [1.25e-6, "seconds", "1.25 µs"],
    [0.00366, "seconds", "3.66 ms"],
    [0.9999, "seconds", "1 s"],
    [90_000, "seconds", "25 h"],
    [0.156, "seconds_per_second", "156 ms/s"],
    [0.0042, "cores", "0.004"],
    [0.00004, "cores", "<0.001"],
    [1.999, "cores", "2"],
    [1, "yes_no", "yes"],
    [0, "yes_no", "no"],
  ])("%d %s is %s", (value, unit, want) => {
    expect(formatValue(value, unit)).toBe(want);
  });

  it.each([null, undefined, NaN, Infinity])("%s is absent, not zero", (value) => {
    expect(formatValue(value, "count")).toBe(ABSENT);
  });
});

it("adds bytes, but neither shares nor latencies", () => {
  expect((["bytes", "cores", "ratio", "seconds"] as const).map(isAdditive)).toEqual([true, true, false, false]);
});

describe("formatShare", () => {
  it.each([
    [0, "0 %"],
    [0.00001, "<0.01 %"],
    [0.0123, "1.2 %"],
    [0.456, "46 %"],
    [0.9995, ">99.9 %"],
    [1, "100 %"],
  ])("%d is %s", (share, want) => {
    expect(formatShare(share)).toBe(want);
  });
});
