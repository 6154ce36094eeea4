// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { InstantSample } from "../../api/types";
import { FACT_EXPRS, type Facts, readFacts } from "./facts";
import { findGaps } from "./gaps";
import { verdicts } from "./verdict";

const sample = (metric: Record<string, string>, value: number): InstantSample => ({ metric, value: [0, value] });

function facts(given: {
  tees?: Record<string, number>;
  syscalls?: Record<string, number>;
  cpu?: Record<string, number>;
  failed?: string[];
  probes?: [string, string, number][];
  down?: string[];
  workloads?: string[];
  levels?: Record<string, string>;
  missed?: Record<string, number>;
}): Facts {
  const rates = (of: Record<string, number> = {}): InstantSample[] => Object.entries(of).map(([workload, value]) => sample({ workload }, value));
  return readFacts([
    [
      ...Object.entries(given.tees ?? {}).map(([tee, value]) => sample({ __name__: "teescope_tee_available", tee }, value)),
      ...(given.probes ?? []).map(([probe, reason, value]) => sample({ __name__: "teescope_probe_attached", probe, reason }, value)),
      ...(given.failed ?? []).map((collector) => sample({ __name__: "teescope_collector_success", collector }, 0)),
      ...(given.down ?? []).map((instance) => sample({ __name__: "up", instance }, 0)),
      ...Object.entries(given.levels ?? {}).map(([instance, level]) => sample({ __name__: "teescope_self_level", instance, level }, 1)),
    ],
    rates(given.syscalls),
    rates(given.cpu),
    (given.workloads ?? []).map((workload) => sample({ workload }, 1)),
    [],
    [],
    Object.entries(given.missed ?? {}).map(([program, value]) => sample({ program }, value)),
  ], false);
}

const ids = (given: Parameters<typeof facts>[0]): string[] => findGaps(facts(given)).map((gap) => gap.id);

describe("what the figures leave out", () => {
  it("says what is not counted where monitoring would exceed its budget", () => {
    const [worst, lesser] = findGaps(facts({ levels: { a: "sampled", b: "off" } }));
    expect(worst?.title).toContain("b is too busy");
    expect(worst?.detail).toContain("not counted");
    expect(lesser?.detail).toContain("estimates");
    expect(lesser?.detail).toContain("--overhead.budget");
  });

  it("is empty where everything is counted", () => {
    expect(ids({ syscalls: { bash: 3 }, cpu: { bash: 1 }, probes: [["sys_enter", "", 1]] })).toEqual([]);
  });

  it("names what is counted together, with how much it is", () => {
    const [gap] = findGaps(facts({ syscalls: { other: 2000 }, cpu: { other: 0.5 } }));
    expect(gap?.detail).toContain("2k/s of system calls and 0.5 CPU cores");
  });

  it("says of which counts the kernel has left out events", () => {
    const [first, second, ...others] = findGaps(facts({ missed: { sys_enter: 1500, sys_exit: 2 } }));
    expect(others).toEqual([]);
    expect(first?.title).toBe("Counts of sys_enter are not exact");
    expect(first?.detail).toContain("1.5k/s");
    expect(second?.detail).toContain("2/s");
  });

  it("does not call counts exact while runs of programs are missed, and does not blame the budget", () => {
    const [gap, ...others] = findGaps(facts({ levels: { a: "incomplete" } }));
    expect(others).toEqual([]);
    expect(gap?.title).toBe("Counts of a are not exact");
    expect(gap?.detail).not.toContain("budget");
  });

  it("puts what is broken first", () => {
    expect(
      ids({
        cpu: { other: 0.01 },
        probes: [["llc", "no PMU", 0], ["sys_enter", "", 1]],
        failed: ["system"],
        down: ["b:1"],
      }),
    ).toEqual(["down-b:1", "collector-system", "probes", "folded"]);
  });

  it("quotes the reasons of probes", () => {
    const [gap] = findGaps(facts({ probes: [["llc", "no PMU", 0], ["sys_enter", "", 1]] }));
    expect(gap).toMatchObject({ title: "1 of 2 probes are not attached", severity: "note" });
    expect(gap?.detail).toContain("llc: no PMU");
  });

  it("counts a probe as attached that is so on any machine", () => {
    expect(ids({ probes: [["llc", "", 1], ["llc", "", 0]] })).toEqual([]);
  });
});

describe("the verdict", () => {
  it.each([
    [{}, "Not known yet"],
    [{ sev: 0, sgx: 0, tdx: 0 }, "No TEE on this machine"],
    [{ sgx: 1, tdx: 0 }, "SGX available"],
  ])("about TEEs %j is %s", (tees, want) => {
    expect(verdicts(facts({ tees }))[0]?.answer).toBe(want);
  });

  it("names every kind of TEE as the documents do", () => {
    expect(verdicts(facts({ tees: { nitro: 1, cca: 0, sgx: 0, sev: 0, tdx: 0 } }))[0]).toMatchObject({
      answer: "Nitro available",
      detail: "SGX no · TDX no · SEV no · CCA no · Nitro yes",
    });
  });

  it("names the busiest workload, never the idle task", () => {
    const [, workload] = verdicts(facts({ cpu: { idle: 2, redis: 0.5, cron: 0.25 }, workloads: ["redis", "cron"] }));
    expect(workload?.answer).toBe("redis is busiest");
  });

  it("does not make up what it does not know", () => {
    const [, workload, cost] = verdicts(facts({}));
    expect(workload?.answer).toBe("None reported yet");
    expect(cost?.answer).toBe("Not known yet");
  });

  it("has as many expressions as answers", () => {
    expect(FACT_EXPRS).toHaveLength(7);
  });
});
