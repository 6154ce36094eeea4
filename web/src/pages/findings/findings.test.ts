// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { InstantSample } from "../../api/types";
import { FACT_EXPRS, type Facts, readFacts } from "./facts";
import { findAll } from "./rules";
import { verdicts } from "./verdict";

const sample = (metric: Record<string, string>, value: number): InstantSample => ({ metric, value: [0, value] });

type Calls = Record<string, Record<string, number>>;

function facts(given: {
  tees?: Record<string, number>;
  syscalls?: Calls;
  switches?: Calls;
  cpu?: Record<string, number>;
  failed?: string[];
  probes?: [string, string, number][];
  down?: string[];
  workloads?: string[];
  throttled?: Record<string, number>;
  memory?: Record<string, [number, number]>;
  levels?: Record<string, string>;
}): Facts {
  const flat = (calls: Calls, label: string): InstantSample[] =>
    Object.entries(calls).flatMap(([workload, inner]) =>
      Object.entries(inner).map(([key, value]) => sample({ workload, [label]: key }, value)),
    );
  return readFacts([
    Object.entries(given.tees ?? {}).map(([tee, value]) => sample({ tee }, value)),
    flat(given.syscalls ?? {}, "syscall"),
    flat(given.switches ?? {}, "kind"),
    Object.entries(given.cpu ?? {}).map(([workload, value]) => sample({ workload }, value)),
    (given.failed ?? []).map((collector) => sample({ collector }, 0)),
    (given.probes ?? []).map(([probe, reason, value]) => sample({ probe, reason }, value)),
    (given.down ?? []).map((instance) => sample({ instance }, 0)),
    (given.workloads ?? []).map((workload) => sample({ workload }, 1)),
    [],
    [],
    Object.entries(given.throttled ?? {}).map(([name, share]) => sample({ name }, share)),
    Object.entries(given.memory ?? {}).map(([name, [used]]) => sample({ name }, used)),
    Object.entries(given.memory ?? {}).flatMap(([name, [, limit]]) => (limit > 0 ? [sample({ name }, limit)] : [])),
    Object.entries(given.levels ?? {}).map(([instance, level]) => sample({ instance, level }, 1)),
  ]);
}

const ids = (given: Parameters<typeof facts>[0]): string[] => findAll(facts(given)).map((f) => f.id);

describe("what stands out", () => {
  it("says what is left out where watching would cost more than its budget", () => {
    const [worst, lesser] = findAll(facts({ levels: { a: "sampled", b: "off" } }));
    expect(worst?.title).toContain("b is too busy");
    expect(worst?.detail).toContain("not counted");
    expect(lesser?.detail).toContain("estimates");
    expect(lesser?.detail).toContain("--overhead.budget");
  });

  it("is nothing on a quiet machine", () => {
    expect(ids({ syscalls: { bash: { read: 3 } }, switches: { bash: { voluntary: 2 } } })).toEqual([]);
  });

  it("names the busiest maker of system calls and its commonest", () => {
    const [finding] = findAll(facts({ syscalls: { redis: { read: 3000, write: 1000 }, cron: { read: 1000 } } }));
    expect(finding?.title).toBe("redis makes the most system calls: 4k/s");
    expect(finding?.detail).toBe("That is 80 % of all that are shown. Its commonest is read: 3k/s, 75 % of its calls.");
    expect(finding?.workload).toBe("redis");
  });

  it("sees chatter only where it outweighs the moving of data", () => {
    expect(ids({ syscalls: { a: { futex: 2000, read: 100 } } })).toContain("chatter");
    expect(ids({ syscalls: { a: { futex: 2000, recvmsg: 2100 } } })).not.toContain("chatter");
    expect(ids({ syscalls: { a: { futex: 20, read: 1 } } })).not.toContain("chatter");
  });

  it("quotes the numbers of each talker", () => {
    const [finding] = findAll(facts({ syscalls: { a: { futex: 2000, read: 100 }, b: { getpid: 3000 } } }));
    expect(finding?.title).toBe("b and a ask for time, locks or identity more often than they move data");
    expect(finding?.detail).toContain("b 3k/s, mostly getpid, against 0/s of reads and writes; a 2k/s, mostly futex");
  });

  it("sees who is pushed aside", () => {
    expect(ids({ switches: { a: { voluntary: 500, involuntary: 500 } } })).toEqual(["involuntary"]);
    expect(ids({ switches: { a: { voluntary: 900, involuntary: 100 } } })).toEqual([]);
  });

  it("names all who are pushed aside in one sentence", () => {
    const [finding] = findAll(facts({ switches: { a: { voluntary: 500, involuntary: 500 }, b: { involuntary: 900 } } }));
    expect(finding?.title).toBe("b and a are often taken off the processor");
    expect(finding?.detail).toContain("100 % of the 900/s context switches of b and 50 % of the 1k/s context switches of a");
  });

  it("says nothing about names that stand for many", () => {
    const calls = { futex: 9000, read: 1 };
    expect(ids({ syscalls: { idle: calls, kernel: calls }, switches: { kernel: { involuntary: 9000 } } })).toEqual([]);
  });

  it("names the containers that are throttled, the most throttled first", () => {
    const [finding] = findAll(facts({ throttled: { web: 0.1, redis: 0.4, db: 0.01, none: NaN } }));
    expect(finding).toMatchObject({ title: "redis and web are throttled", severity: "warn", page: "containers" });
    expect(finding?.detail).toContain("of redis in 40 % of its periods and of web in 10 % of its periods");
  });

  it("sees who is near the memory limit, and nobody without one", () => {
    const [finding] = findAll(facts({ memory: { redis: [62, 64], web: [10, 64], free: [9e9, 0] } }));
    expect(finding?.title).toBe("redis is near the memory limit");
    expect(finding?.detail).toContain("takes 97 % in redis, 62 B of 64 B.");
  });

  it("puts what is broken first", () => {
    expect(
      ids({
        cpu: { other: 0.01 },
        probes: [["llc", "no PMU", 0], ["sys_enter", "", 1]],
        failed: ["system"],
        down: ["b:1"],
        switches: { a: { involuntary: 900 } },
      }),
    ).toEqual(["down-b:1", "collector-system", "involuntary", "probes", "folded"]);
  });

  it("quotes the reasons of probes", () => {
    const [finding] = findAll(facts({ probes: [["llc", "no PMU", 0], ["sys_enter", "", 1]] }));
    expect(finding).toMatchObject({ title: "1 of 2 probes are not attached", severity: "note" });
    expect(finding?.detail).toContain("llc: no PMU");
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

  it("names the busiest workload, never the idle task", () => {
    const [, workload] = verdicts(facts({ cpu: { idle: 2, redis: 0.5, cron: 0.25 }, workloads: ["redis", "cron"] }));
    expect(workload?.answer).toBe("redis is busiest");
  });

  it("does not make up what it does not know", () => {
    const [, workload, cost] = verdicts(facts({}));
    expect(workload?.answer).toBe("None reported yet");
    expect(cost?.answer).toBe("Not known yet");
  });

  it("asks as many questions as it reads answers", () => {
    expect(FACT_EXPRS).toHaveLength(14);
  });
});
