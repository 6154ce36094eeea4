// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { InstantSample } from "../api/types";
import { WORKLOAD } from "../panels/dashboards/workload";
import { readIdentity, sinceText, switchable, switchesRefusal, teeSeries } from "./workload-facts";

const sample = (metric: Record<string, string>, value = 1): InstantSample => ({ metric, value: [0, value] });

describe("the page of a workload", () => {
  it("has each panel once", () => {
    const ids = WORKLOAD.flatMap((s) => s.panels).map((def) => def.id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toEqual(expect.arrayContaining(["syscalls-by-name", "syscall-time", "context-switches", "run-queue-wait", "tee-epc-use", "tee-transitions", "containers"]));
  });
});

describe("the identity", () => {
  const info = sample({ workload: "w", kind: "container", tee: "sgx", runtime: "gramine", container: "abc", pod: "", instance: "host" });
  const container = sample({ container: "redis", pod: "redis-0", namespace: "shop", image: "redis:7", name: "x" });

  it("has a line for each known fact only", () => {
    const facts = readIdentity([[info], [container], [sample({}, 2)], [sample({}, 9)], [sample({}, 900)], [sample({}, 890)]], 1000);
    expect(Object.fromEntries(facts.map((f) => [f.label, f.value]))).toMatchObject({
      Kind: "container", TEE: "sgx", Runtime: "gramine", Container: "redis", Image: "redis:7", Pod: "shop/redis-0", Processes: "2", Threads: "9", Machine: "host",
    });
    expect(facts.find((f) => f.label === "Seen")?.value).toMatch(/\(110 s\)$/); // the earlier of the two searches
    expect(readIdentity([[], [], [], [], [], []], 1000)).toEqual([]);
  });

  it("does not claim to know a beginning that lies before what was inspected", () => {
    expect(sinceText(0, 86_400)).toBe("for more than 24 h");
    expect(sinceText(86_000, 86_300)).toMatch(/^since .* \(5 min\)$/);
    expect(sinceText(undefined, 5)).toBe("");
  });

  it("quotes the name", () => {
    expect(teeSeries('a"b', "")).toMatch(/,workload="a\\"b"}$/);
    expect(teeSeries("a", 'instance="h"')).toMatch(/,workload="a",instance="h"}$/);
  });
});

describe("what switches more on", () => {
  it("says where that is done if not here, and what would allow it", () => {
    const of = { allowed: true, machine: "here", max_seconds: 60, probes: [], changes: [] };
    for (const node of ["here", ""]) expect(switchesRefusal(of, "w", node)).toBe("");
    expect(switchesRefusal({ ...of, machine: "" }, "w", "there")).toBe("");
    expect(switchesRefusal({ ...of, allowed: false }, "w", "here")).toContain("control.enabled");
    expect(switchesRefusal(of, "w", "there")).toMatch(/runs on there.* on here\. .*teescope control watch workload=w/);
    expect(switchesRefusal(null, "w", "there")).toMatch(/no agent.*teescope control watch workload=w/);
  });

  it("quotes a name that a shell would run", () => {
    expect(switchesRefusal(null, "nginx@1.service", "")).toMatch(/watch workload=nginx@1\.service --for 10m$/);
    expect(switchesRefusal(null, "$(reboot);'`", "")).toContain(`watch 'workload=$(reboot);'\\''\`' --for 10m`);
  });

  it("offers only what this agent can switch on for the shown workload", () => {
    const of = { allowed: true, machine: "here", max_seconds: 300, probes: [], changes: [] };
    expect(switchable(of, "timing", [], ["here"], 600)).toEqual({ kind: "timing", seconds: 300 });
    expect(switchable(of, "watch", ["w"], ["here"], 60)).toEqual({ kind: "watch", rule: "workload=w", seconds: 60 });
    expect(switchable(of, "watch", ["w"], [], 60)).toBeDefined();
    for (const workloads of [[], ["w", "v"]]) expect(switchable(of, "watch", workloads, ["here"], 60)).toBeUndefined();
    for (const nodes of [["there"], ["here", "there"]]) expect(switchable(of, "timing", [], nodes, 60)).toBeUndefined();
    expect(switchable({ ...of, allowed: false }, "timing", [], ["here"], 60)).toBeUndefined();
  });
});
