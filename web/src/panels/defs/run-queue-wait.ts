// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const runQueueWait: ChartDef = {
  id: "run-queue-wait",
  kind: "lines",
  title: "Run-queue wait",
  question: "How long do threads wait for a processor?",
  unit: "seconds_per_second",
  queries: [
    {
      expr: "sum by (workload, instance) ($rate(teescope_run_queue_wait_seconds_total{$workloads}[$window]))",
      legend: "{{workload}}",
    },
  ],
  top: 10,
  help:
    "Time between being able to run and running, added up over threads. 1 s/s means that on average one thread was kept waiting all the time.",
  empty: { text: "No such event was counted in this time range.", probe: "wait|wakeup|switch" },
};
