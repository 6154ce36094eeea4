// SPDX-License-Identifier: Apache-2.0
import type { TableDef } from "../types";

export const workloads: TableDef = {
  id: "workloads",
  kind: "table",
  title: "Workloads",
  question: "Who asks the kernel for what?",
  unit: "count",
  keys: [
    { label: "workload", title: "Workload" },
    { label: "instance", title: "Node", several: true },
  ],
  info: {
    expr: "teescope_workload_info{$candidates}",
    labels: [
      { label: "kind", title: "Kind" },
      { label: "tee", title: "TEE" },
    ],
  },
  columns: [
    {
      title: "CPU cores",
      unit: "cores",
      expr: "sum by (workload, instance) ($rate(teescope_cpu_seconds_total{$candidates}[$window]))",
      spark: true,
    },
    {
      title: "System calls",
      unit: "per_second",
      expr: "sum by (workload, instance) ($rate(teescope_syscalls_total{$candidates}[$window]))",
      spark: true,
    },
    {
      title: "Context switches",
      unit: "per_second",
      expr: "sum by (workload, instance) ($rate(teescope_context_switches_total{$candidates}[$window]))",
      spark: true,
    },
    {
      title: "Page faults",
      unit: "per_second",
      expr: "sum by (workload, instance) ($rate(teescope_page_faults_total{$candidates}[$window]))",
      spark: true,
    },
    {
      title: "Resident memory",
      unit: "bytes",
      expr: "sum by (workload, instance) (teescope_resident_memory_bytes{$candidates})",
      spark: true,
    },
    { title: "Processes", unit: "count", expr: "sum by (workload, instance) (teescope_processes{$candidates})" },
  ],
  sortBy: 0,
  filters: true,
  help:
    "A workload is the container, systemd unit or program that a process belongs to. Figures are means of the newest minute (of the newest point, where points are further apart); the line is the time range. Choose a row to filter every chart by it. The idle task is left out.",
  empty: { text: "No workload has been reported yet." },
};
