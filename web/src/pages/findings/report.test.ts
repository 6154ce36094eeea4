// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { ApiError } from "../../api/errors";
import { report as decode, type Report } from "../../api/findings";
import { chartOf } from "./charts";
import { assumptions, causeText, chosen, figure, formatFigure, gainText, limitedBy, limitText, memberText, notJudged, preceding, rolledUp, savingText, threads, together, verdictText } from "./report";

const finding = {
  id: "0a1b", rule: "chatter", title: "too many calls", workload: "redis", instance: "a:1", cause: "It makes 5,000 calls a second.",
  severity: "high", confidence: "likely", first_seen: "2026-03-01T12:00:00Z", last_seen: "2026-03-01T12:05:00Z",
  evidence: [{ name: "calls", value: 5000, unit: "1/s", n: 60, query: "sum(rate(teescope_syscalls_total[5m]))" }],
  advice: ["Make fewer."], saving: { low: 0.15, high: 0.3, assumptions: ["a cost"] },
  gain: { low: 0.2, high: 0.45, limit: "its busiest thread", assumptions: ["a cost", "an assumption"] }, sources: ["a test"],
};

const raw = {
  schema: 1, source: "x", at: "2026-03-01T12:05:00Z", window_seconds: 300, workloads: 14, findings: [finding], left_out: 0,
  problems: [
    { kind: "absent", query: "x", error: "no samples" },
    { kind: "gap", workload: "cron", error: "it was there for 20 % of the window" },
    { kind: "failed", query: "sum(x)", error: "too slow", rules: ["numa"] },
  ],
  checked: ["a", "b"], skipped: [{ rule: "y", reason: "not measured" }, { rule: "z", reason: "not measured" }], warnings: [],
};

const made = (change: object = {}): Report => decode({ ...raw, ...change }, "findings");

describe("the answer", () => {
  it("is read with what is left out", () => {
    const [first] = made().findings;
    expect(first).toMatchObject({ workload: "redis", not_when: [], runbook: "" });
    expect(first).toMatchObject({ silence: undefined, thresholds: [], settings: [] });
    expect(made({ findings: [{ ...finding, settings: ["turn Exitless off (exitless-off)"] }] }).findings[0]?.settings).toEqual(["turn Exitless off (exitless-off)"]);
    expect(made({ findings: [{ ...finding, silence: { id: "x", kind: "mute", comment: "a test" } }] }).findings[0]?.silence).toEqual({
      id: "x", kind: "mute", comment: "a test", createdBy: "", createdByVerified: false, endsAt: "",
    });
    expect(made({ findings: [{ ...finding, gain: undefined }] }).findings[0]?.gain).toBeUndefined();
  });

  it.each([
    ["another version", { schema: 2 }, "findings.schema: wanted 1, found 2"],
    ["an unknown severity", { findings: [{ ...finding, severity: "huge" }] }, 'findings.findings[0].severity: expected a severity, found "huge"'],
    ["a null for a list", { findings: null }, "findings.findings: expected an array, found null"],
  ])("is refused with %s", (_, change, want) => {
    expect(() => made(change)).toThrow(ApiError);
    expect(() => made(change)).toThrow(want);
  });
});

describe("the verdict", () => {
  it("names the first finding and what it is worth", () => {
    const report = made();
    expect(verdictText(report, report.findings, false)).toBe(
      "1 finding in 14 workloads over 5 min. The first is at redis: 0.15 to 0.3 CPU cores saved; throughput 20 to 45 % more.",
    );
  });

  it("says what was judged when nothing was found", () => {
    expect(verdictText(made(), [], false)).toBe("Nothing found: looked at 14 workloads over 5 min with 2 rules.");
  });

  it("says how many findings are muted", () => {
    expect(verdictText(made({ muted: 2 }), [], false)).toBe("Nothing found: looked at 14 workloads over 5 min with 2 rules. Muted: 2 findings.");
    expect(verdictText(made({ muted: 1 }), made().findings, false)).toMatch(/ more\. Muted: 1 finding\.$/);
  });

  it("distinguishes no findings from no judgement", () => {
    expect(verdictText(made({ workloads: 0 }), [], false)).toBe("Not known: no workload could be judged over 5 min.");
  });

  it("claims nothing while no rule has judged", () => {
    const skipped = [
      { rule: "a", reason: "no workload has data for this rule" },
      { rule: "b", reason: "none of the signals is measured" },
      { rule: "c", reason: "none of the signals is measured" },
    ];
    expect(verdictText(made({ checked: [], skipped }), [], false)).toBe(
      "Not known: no rule has judged 14 workloads over 5 min (none of the signals is measured).",
    );
    expect(verdictText(made({ checked: [], skipped: skipped.slice(0, 2) }), [], false)).toContain("(no workload has data for this rule)");
    expect(verdictText(made({ checked: [], skipped: [], muted: 1 }), [], false)).toBe(
      "Not known: no rule has judged 14 workloads over 5 min. Muted: 1 finding.",
    );
  });

  it("names the machine, and a finding without a gain", () => {
    const report = made({ findings: [{ ...finding, workload: "", saving: undefined, gain: undefined }] });
    expect(verdictText(report, report.findings, false)).toContain("The first is at the machine a:1.");
  });
});

it("lets the filter leave out other workloads, and never the machine", () => {
  const { findings } = made({ findings: [finding, { ...finding, workload: "db" }, { ...finding, workload: "" }] });
  expect(chosen(findings, { workloads: ["db"] }).map((f) => f.workload)).toEqual(["db", ""]);
  expect(chosen(findings, { workloads: [] })).toHaveLength(3);
});

it("lists what was not judged, grouped by reason", () => {
  expect(notJudged(made(), false)).toEqual([
    "y, z: not measured",
    "cron: existed for less than half of the window, or samples are missing",
    "the query sum(x): too slow (for numa)",
  ]);
  const shorts = Array.from({ length: 20 }, (_, i) => ({ kind: "gap", workload: `w${i}`, error: "short" }));
  expect(notJudged(made({ problems: shorts, skipped: [] }), false)).toEqual([
    "w0, w1, w2, w3, w4, w5, w6, w7 and 12 more: existed for less than half of the window, or samples are missing",
  ]);
  const many = shorts.map((p) => ({ ...p, kind: "broken" }));
  expect(notJudged(made({ problems: many, skipped: [] }), false)).toHaveLength(9);
});

it.each([
  [37_000, "1/s", "37k/s"],
  [94 * 1024 * 1024, "bytes", "94 MiB"],
  [1.2e-6, "seconds", "1.2 µs"],
  [0.5, "ratio", "50 %"],
  [3, "threads", "3 threads"],
  [1500, "", "1.5k"],
])("writes %d %s as %s", (value, unit, want) => {
  expect(formatFigure(value, unit)).toBe(want);
});

it("writes an interval where there is one", () => {
  const evidence = { name: "a", value: 0.5, unit: "ratio", low: 0.4, high: 0.6, n: 3, query: "" };
  expect(figure(evidence)).toBe("50 % (40 % to 60 %)");
  expect(figure({ ...evidence, low: undefined })).toBe("50 %");
});

it.each([
  [0.2, 0.45, "20 to 45 % more"],
  [0, 0.12, "up to 12 % more"],
  [0.5, 1.4, "1.5 to 2.4 times as much"],
  [0.1, 0.31, "at least 10 % more"],
  [0.2, 4, "at least 20 % more"],
  [0, 19, "up to 20 times as much"],
  [0.001, 0.002, "under 1 % more"],
])("writes a gain of %d to %d as %s", (low, high, want) => {
  expect(gainText({ low, high })).toBe(want);
});

it.each([
  [0.15, 0.4, "0.15 to 0.4 CPU cores saved"],
  [0, 0.5, "up to 0.5 CPU cores saved"],
  [0.02, 0.3, "at least 0.02 CPU cores saved"],
  [0.0004, 0.0008, "under 0.001 CPU cores saved"],
  [0.0004, 0.0011, "up to 0.0011 CPU cores saved"],
  [0.001, 0.002, "0.001 to 0.002 CPU cores saved"],
  [1.2, 1.2001, "about 1.2 CPU cores saved"],
  [12, 30, "12 to 30 CPU cores saved"],
])("writes a saving of %d to %d as %s", (low, high, want) => {
  expect(savingText({ low, high })).toBe(want);
});

it("says what limits the throughput, or that nothing shows a limit", () => {
  const [first] = made().findings;
  if (!first) throw new Error("no finding");
  expect(limitText(first)).toBe("The throughput is limited by its busiest thread.");
  expect(limitText({ ...first, gain: undefined })).toBe("No measurement shows that the throughput would rise.");
  expect(limitText({ saving: undefined, gain: undefined })).toBe("");
  expect(assumptions(first)).toEqual(["a cost", "an assumption"]);
});

it("says how the estimates of several findings go together", () => {
  const [first] = made({ findings: [{ ...finding, adds: ["a", "b"], overlaps: ["b", "c"] }] }).findings;
  if (!first) throw new Error("no finding");
  expect(together(first)).toEqual([
    "adds to the estimates of a, b",
    "without the part that these findings count: b",
    "may be the same time, and does not add to: c",
  ]);
  expect(made().findings.map(together)).toEqual([[]]);
});

it("says what preceded a finding, and what its figure was earlier", () => {
  const [first] = made({
    findings: [
      {
        ...finding,
        preceded: [{ kind: "restart", at: "2026-03-01T11:58:20Z", seconds: 100, what: "redis was restarted", chance: 0.02 }],
        earlier: [{ ago_seconds: 86_400, name: "calls", value: 4000, unit: "1/s", query: "x" }],
      },
    ],
  }).findings;
  if (!first) throw new Error("no finding");
  const [event, before] = preceding(first);
  expect(event).toMatch(/^100 s before it was first seen, redis was restarted \(at .*:58:20 .*; by chance in at most 2 % of findings\)$/);
  expect(before).toBe("24 h earlier: calls 4k/s");
  expect(made().findings.map(preceding)).toEqual([[]]);
});

it("reads whether a second look has confirmed a finding", () => {
  expect(made({ findings: [finding, { ...finding, unconfirmed: true }] }).findings.map((f) => f.unconfirmed)).toEqual([false, true]);
  expect(() => made({ findings: [{ ...finding, unconfirmed: "yes" }] })).toThrow("findings.findings[0].unconfirmed: expected true or false, found a string");
});

it("says what limits a workload", () => {
  const { limits } = made({ limits: [{ workload: "redis", limit: "cpu", name: "CPU", because: "it is busy", window_seconds: 300, evidence: [] }] });
  expect(limits.map((limit) => limitedBy(limit, false))).toEqual(["What limits redis: CPU (it is busy)."]);
});

it("states no limit where an older server does not", () => {
  expect(made().limits).toEqual([]);
});

describe("the chart of a query", () => {
  it.each([
    ["sum(rate(teescope_syscalls_total[5m]))", "system", "syscalls-by-name"],
    ['(sum by (x) (rate(teescope_enclave_transitions_total[5m]))) and on (x) label_replace(vector(1), "x", "y", "", "")', "tee", undefined],
    ["sum by (instance) (rate(sgx_load_back_seconds_sum[5m]))", "tee", undefined],
    ["rate(node_vmstat_pgmajfault[5m])", "infrastructure", undefined],
    ["sum by (reason) (rate(teescope_vm_exit_seconds_total[5m]) * on (vm) group_left (workload) teescope_vm_info)", "tee", "vm-outside"],
  ])("of %s is on %s", (query, page, panel) => {
    const link = chartOf(query);
    expect(link).toMatchObject({ page, panel: panel ?? link?.panel });
  });

  it("is undefined for a family without a panel", () => {
    expect(chartOf("rate(http_requests_total[5m])")).toBeUndefined();
  });
});

describe("the same cause on several machines", () => {
  const member = (workload: string, instance: string, low: number) => ({
    id: "1", workload, instance, severity: "low", saved_cores_low: low, saved_cores_high: 2 * low,
  });
  const members = [member("db", "a:1", 0.5), member("db", "b:1", 0.25), member("web", "c:1", 0)];
  const cause = {
    rule: "locks", title: "locks that wait", severity: "low", machines: 14, workloads: 2, findings: 17, saved_cores_low: 2, saved_cores_high: 4, members,
  };
  const causes = made({ causes: [cause] }).causes;

  it("is summed over all of them", () => {
    const [all] = rolledUp(causes, [], { workloads: [] });
    expect(all && causeText(all)).toBe(
      "locks that wait (locks): 17 findings on 14 machines, at most low. In total 2 to 4 CPU cores saved, the largest part at db · a:1.",
    );
    expect(all?.members.map(memberText)).toEqual(["db · a:1, low, 0.5 to 1 CPU cores saved", "db · b:1, low, 0.25 to 0.5 CPU cores saved", "web · c:1, low"]);
  });

  it("has the figures of what the filters leave", () => {
    const [some] = rolledUp(causes, [], { workloads: ["db"] });
    expect(some && causeText(some)).toBe(
      "locks that wait (locks): 2 findings on 2 machines, at most low. In total 0.75 to 1.5 CPU cores saved, the largest part at db · a:1.",
    );
    expect(rolledUp(causes, [], { workloads: ["web"] })).toEqual([]);
  });

  it("counts also findings that the cause does not list", () => {
    const found = (workload: string, instance: string, low: number, severity: string) => ({
      ...finding, rule: "locks", workload, instance, severity, saving: { low, high: 2 * low, assumptions: [] },
    });
    const report = made({
      causes: [cause],
      findings: [
        ...Array.from({ length: 14 }, (_, i) => found("db", `n${i}:1`, 0.125, "low")),
        ...Array.from({ length: 3 }, (_, i) => found("web", `n${i}:1`, 0.25, "info")),
      ],
    });
    const text = (workload: string): string[] => rolledUp(report.causes, report.findings, { workloads: [workload] }).map(causeText);
    expect(text("db")).toEqual([
      "locks that wait (locks): 14 findings on 14 machines, at most low. In total 1.75 to 3.5 CPU cores saved, the largest part at db · n0:1.",
    ]);
    expect(text("web")).toEqual([
      "locks that wait (locks): 3 findings on 3 machines, at most info. In total 0.75 to 1.5 CPU cores saved, the largest part at web · n0:1.",
    ]);
    expect(rolledUp(report.causes, report.findings, { workloads: [] })).toEqual(report.causes);
  });

  it("is absent in the answer of an older server", () => {
    expect(made().causes).toEqual([]);
  });
});

describe("the threads of a finding", () => {
  it("have their number and figure, and unknown figures are left out", () => {
    const [found] = made({
      findings: [{ ...finding, threads: [
        { name: "worker", count: 4, figure: "cpu", value: 1.5, unit: "cores" },
        { name: "main", count: 1, figure: "voluntary_switches", value: 1200, unit: "1/s" },
        { name: "x", count: 1, figure: "of a later server", value: 1, unit: "1" },
      ] }],
    }).findings;
    expect(found && threads(found)).toEqual(["worker (4): 1.5 cores of CPU time", "main: went to sleep 1.2k/s"]);
    expect(made().findings.map(threads)).toEqual([[]]);
  });
});
