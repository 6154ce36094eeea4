// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const residentMemory: ChartDef = {
  id: "resident-memory",
  kind: "stacked",
  title: "Resident memory",
  question: "How much memory is held?",
  unit: "bytes",
  queries: [
    { expr: "sum by (workload, instance) (teescope_resident_memory_bytes{$workloads})", legend: "{{workload}}" },
  ],
  top: 10,
  help: "Sum over the processes of a workload; pages shared by several are counted in each.",
  empty: { text: "No resident memory was reported in this time range." },
};
