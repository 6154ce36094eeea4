// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { nodeCpu } from "./defs/node-cpu";
import { syscallsByName } from "./defs/syscalls-by-name";
import { teeEpcUse } from "./defs/tee-epc-use";
import { workloads } from "./defs/workloads";
import { notReached } from "./reach";

const none = { workloads: [], filters: [] };
const one = { workloads: ["redis"], filters: [] };
const runtime = { workloads: [], filters: [{ kind: "runtime", text: "gramine", regex: false }] } as const;
const node = { workloads: [], filters: [{ kind: "node", text: "h:1", regex: false }] } as const;

describe("notReached", () => {
  it("says nothing without a filter, of what is filtered, and of nodes, which reach everything", () => {
    for (const def of [nodeCpu, syscallsByName, teeEpcUse, workloads]) {
      expect(notReached(def, none)).toBeUndefined();
      expect(notReached(def, node)).toBeUndefined();
    }
    expect(notReached(syscallsByName, one)).toBeUndefined();
    expect(notReached(workloads, runtime)).toBeUndefined();
  });

  it("names what is of the whole machine", () => {
    expect(notReached(nodeCpu, one)).toBe("Not filtered by workload: of the whole machine.");
    expect(notReached(teeEpcUse, runtime)).toBe("Not filtered by workload: free.");
  });
});
