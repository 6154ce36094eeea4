// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const containerThreads: ChartDef = {
  id: "container-threads",
  kind: "lines",
  title: "Threads by container",
  question: "Does a container leak threads?",
  unit: "count",
  queries: [
    {
      expr: "sum by (name, pod, container, instance) (container_threads{name!=\"\",container!=\"POD\",$nodes} $containers)",
      legend: "{{pod}}/{{container}}|{{pod}}|{{name}}",
    },
  ],
  top: 10,
  help: "At each scrape.",
  empty: { text: "No threads of containers were reported in this time range." },
};
