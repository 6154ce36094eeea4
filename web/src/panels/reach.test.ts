// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { INFRASTRUCTURE } from "./dashboards/infrastructure";
import { WORKLOADS } from "./dashboards/overview";
import { panel } from "./dashboards/pick";
import { SYSTEM } from "./dashboards/system";
import { TEE } from "./dashboards/tee";
import { notReached } from "./reach";

const nodeCpu = panel(INFRASTRUCTURE, "node-cpu");
const syscallsByName = panel(SYSTEM, "syscalls-by-name");
const teeEpcUse = panel(TEE, "tee-epc-use");

const none = { workloads: [], filters: [] };
const one = { workloads: ["redis"], filters: [] };
const runtime = { workloads: [], filters: [{ kind: "runtime", text: "gramine", regex: false }] } as const;
const node = { workloads: [], filters: [{ kind: "node", text: "h:1", regex: false }] } as const;

describe("notReached", () => {
  it("is empty without a filter, for filtered values, and for the filter of nodes, which applies to all", () => {
    for (const def of [nodeCpu, syscallsByName, teeEpcUse, WORKLOADS]) {
      expect(notReached(def, none)).toBeUndefined();
      expect(notReached(def, node)).toBeUndefined();
    }
    expect(notReached(syscallsByName, one)).toBeUndefined();
    expect(notReached(WORKLOADS, runtime)).toBeUndefined();
  });

  it("names what is of the whole machine", () => {
    expect(notReached(nodeCpu, one)).toBe("Not filtered by workload: this is the whole machine.");
    expect(notReached(teeEpcUse, runtime)).toBe("Not filtered by workload: free.");
  });
});
