// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const containerMemory: ChartDef = {
  id: "container-memory",
  kind: "stacked",
  title: "Memory by container",
  question: "Which container holds the memory?",
  unit: "bytes",
  queries: [
    {
      expr:
        "sum by (name, pod, container, instance) (container_memory_working_set_bytes{name!=\"\",container!=\"POD\",$nodes} $containers)",
      legend: "{{pod}}/{{container}}|{{pod}}|{{name}}",
    },
  ],
  top: 10,
  help: "The working set: memory in use less the inactive page cache, which the kernel takes back first.",
  empty: { text: "No memory of containers was reported in this time range." },
};
