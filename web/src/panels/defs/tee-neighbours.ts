// SPDX-License-Identifier: Apache-2.0
import type { MatrixDef } from "../types";

export const teeNeighbours: MatrixDef = {
  id: "tee-neighbours",
  kind: "matrix",
  title: "Who evicts whom",
  question: "Which neighbour takes whose enclave memory?",
  unit: "count",
  keys: [
    { label: "workload", title: "Loses pages" },
    { label: "by", title: "To" },
    { label: "instance", title: "Node", several: true },
  ],
  columns: [
    {
      title: "Pages",
      unit: "per_second",
      expr: "sum by (workload, by, instance) ($rate(sgx_workload_pages_evicted_by_total{$workloads}[$window])) > 0",
    },
  ],
  help:
    "A row is who loses, a column who takes, the darker the more. Pages that the enclaves of one workload lost because those of another took some: the one that evicted them itself, or the one that took a page last when the driver evicted in the background. A workload that evicts itself has a working set beyond what is left for it.",
  empty: { text: "No workload lost enclave memory at the end of this time range.", probe: "sgx_" },
};
