// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { addUpTime, bucketName, bucketQuantile, columnTotal, heatShare, heatValue, lowerBound, toBuckets, trimBuckets } from "./buckets";

const frame = {
  times: [10, 20],
  series: [
    { name: "+Inf", values: [9, null] },
    { name: "0.001", values: [0, null] },
    { name: "0.002", values: [4, null] },
    { name: "0.004", values: [7, 1] },
    { name: "0.008", values: [7, 0.5] },
  ],
};

describe("toBuckets", () => {
  it("takes cumulative series apart, in the order of their bounds", () => {
    const buckets = toBuckets(frame);
    expect(buckets.bounds).toEqual([0.001, 0.002, 0.004, 0.008, Infinity]);
    expect(buckets.cells.map((row) => row[0])).toEqual([0, 4, 3, 0, 2]);
    expect(columnTotal(buckets, 0)).toBe(9);
  });

  it("keeps what was not measured absent, and never goes below zero", () => {
    expect(toBuckets(frame).cells.map((row) => row[1])).toEqual([null, null, 1, 0, null]);
    expect(columnTotal({ times: [1], bounds: [1], cells: [[null]] }, 0)).toBeNull();
  });
});

it("adds rates up to events, and keeps missing values missing", () => {
  const rates = { times: [5, 10, 15], series: [{ name: "1", values: [2, null, 0.2] }, { name: "2", values: [null, null, null] }] };
  expect(addUpTime(rates, 5)).toEqual({ times: [15], series: [{ name: "1", values: [11] }, { name: "2", values: [null] }] });
});

describe("trimBuckets", () => {
  it("removes empty ends except one bucket", () => {
    const bounds = [1, 2, 4, 8, 16, 32];
    const cells = [[0], [0], [3], [0], [0], [0]];
    expect(trimBuckets({ times: [1], bounds, cells }).bounds).toEqual([2, 4, 8]);
  });

  it("is empty without events", () => {
    expect(trimBuckets({ times: [1], bounds: [1, 2], cells: [[0], [null]] }).bounds).toEqual([]);
  });
});

describe("the scale of colours", () => {
  it("is 0 for zero, 1 for the maximum, and steep near zero", () => {
    expect([heatShare(0, 10), heatShare(10, 10), heatShare(5, 0)]).toEqual([0, 1, 0]);
    expect(heatShare(1, 100)).toBeGreaterThan(0.1);
  });

  it("is read backwards by its legend", () => {
    for (const share of [0.25, 0.5, 1]) expect(heatShare(heatValue(share, 40), 40)).toBeCloseTo(share);
  });
});

describe("bucketQuantile", () => {
  it("interpolates within the bucket", () => {
    expect(bucketQuantile(0.5, [1, 2, 4], [0, 10, 0])).toBe(1.5);
    expect(bucketQuantile(0.75, [1, 2, 4], [2, 0, 2])).toBe(3);
  });

  it("ends at the last finite bound, and is null without events", () => {
    expect(bucketQuantile(0.99, [1, Infinity], [1, 9])).toBe(1);
    expect(bucketQuantile(0.5, [1, 2], [0, 0])).toBeNull();
  });
});

it("names buckets", () => {
  expect(bucketName(0, 1e-6, "seconds")).toBe("up to 1 µs");
  expect(bucketName(1e-6, 2e-6, "seconds")).toBe("1 µs to 2 µs");
  expect(bucketName(4, Infinity, "seconds")).toBe("above 4 s");
  expect([lowerBound([1, 2, 4], 4), lowerBound([1, 2], 1)]).toEqual([2, 0]);
});
