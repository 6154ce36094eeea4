// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { dividedUnit, type Divisor, parseDivisor } from "./normalise";

const exprOf = (per: string): string => (parseDivisor(per) as Divisor).expr;

describe("what is divided by", () => {
  it("is nothing, work that teescope counts, or a counter of the application", () => {
    expect(parseDivisor("")).toBeUndefined();
    expect(parseDivisor("cpu")).toMatchObject({ scale: 1, noun: "CPU second" });
    expect(parseDivisor("call:read")).toMatchObject({ scale: 100, noun: "100 calls of read" });
    expect(parseDivisor("redis_commands_processed_total")).toEqual({
      expr: "sum($rate(redis_commands_processed_total[$window]))",
      scale: 100,
      noun: "100 of redis_commands_processed",
    });
  });

  it("is asked of the workload where the metric knows it", () => {
    expect(exprOf("teescope_ocalls_total")).toContain("{$workloads}");
    expect(exprOf("call:read")).toContain('syscall="read",$workloads');
    expect(exprOf('x_total{server="a"}')).toBe('sum($rate(x_total{server="a"}[$window]))');
  });

  it.each(["call:", "rate(x[5m])", "x_total{", "x_total{a=\"$rate\"}", "1x", "a b", "x[5m]", 'x{a="}"}'])("is not %s, and says why", (per) => {
    expect(parseDivisor(per)).toMatch(/\.$/);
  });

  it("turns rates into amounts and does not change levels", () => {
    expect(dividedUnit("cores")).toBe("seconds");
    expect(dividedUnit("per_second")).toBe("count");
    expect(dividedUnit("bytes")).toBeUndefined();
    expect(dividedUnit("ratio")).toBeUndefined();
  });
});
