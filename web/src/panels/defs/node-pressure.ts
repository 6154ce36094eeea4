// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const nodePressure: ChartDef = {
  id: "node-pressure",
  kind: "lines",
  title: "Pressure",
  question: "Does work wait for processors, memory or disks?",
  unit: "ratio",
  queries: [
    { expr: "max($rate(node_pressure_cpu_waiting_seconds_total{$nodes}[$window]))", legend: "CPU, some wait" },
    { expr: "max($rate(node_pressure_memory_waiting_seconds_total{$nodes}[$window]))", legend: "memory, some wait" },
    { expr: "max($rate(node_pressure_memory_stalled_seconds_total{$nodes}[$window]))", legend: "memory, all wait" },
    { expr: "max($rate(node_pressure_io_waiting_seconds_total{$nodes}[$window]))", legend: "I/O, some wait" },
    { expr: "max($rate(node_pressure_io_stalled_seconds_total{$nodes}[$window]))", legend: "I/O, all wait" },
  ],
  ordered: true,
  help:
    "Pressure stall information (PSI): the share of time in which some task, or all that were not idle, waited. Of several machines the worst is shown.",
  empty: { text: "No pressure was reported. It needs a kernel with PSI, which some start only with psi=1." },
};
