// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const containerMemoryShare: ChartDef = {
  id: "container-memory-share",
  kind: "lines",
  title: "Memory against the limit",
  question: "Which container is near its memory limit?",
  unit: "ratio",
  queries: [
    {
      expr:
        "sum by (name, pod, container, instance) (container_memory_working_set_bytes{name!=\"\",container!=\"POD\",$nodes} $containers) / sum by (name, pod, container, instance) (container_spec_memory_limit_bytes{name!=\"\",container!=\"POD\",$nodes} > 0)",
      legend: "{{pod}}/{{container}}|{{pod}}|{{name}}",
    },
  ],
  top: 10,
  thresholds: [{ at: 0.9, level: "warn" }], // as the alert has it
  help:
    "The working set divided by the limit. At the limit the kernel takes pages back, which makes page faults, and then kills.",
  empty: { text: "No container has a memory limit." },
};
