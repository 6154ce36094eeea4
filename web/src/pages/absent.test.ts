// SPDX-License-Identifier: Apache-2.0
import { expect, it } from "vitest";
import { SYSTEM } from "../panels/dashboards/system";
import { WORKLOAD } from "../panels/dashboards/workload";
import { families } from "../panels/families";
import { absentAmong, selectorsOf } from "./use-absent";

const panels = [...SYSTEM, ...WORKLOAD].flatMap((s) => s.panels);

it("folds a panel if the server has no series of any of its metrics, and no other", () => {
  const all = panels.flatMap((def) => families(def));
  expect(absentAmong(panels, all)).toEqual(new Set());
  const some = absentAmong(panels, all.filter((name) => !name.includes("llc") && name !== "teescope_syscall_seconds_total"));
  expect(some).toEqual(new Set(["syscall-time", "llc", "llc-miss-share"]));
});

it("knows a histogram by the names of its series", () => {
  const def = SYSTEM.flatMap((s) => s.panels).filter(({ id }) => id === "block-latency");
  expect(def.flatMap((one) => families(one))).toEqual(["teescope_block_io_latency_seconds"]);
  expect(absentAmong(def, ["teescope_block_io_latency_seconds_count"])).toEqual(new Set());
  expect(absentAmong(def, []).size).toBe(1);
  expect(selectorsOf(def.flatMap(families))[0]).toBe('{__name__=~"teescope_block_io_latency_seconds|teescope_block_io_latency_seconds_count",$workloads}');
});
