// SPDX-License-Identifier: Apache-2.0
import type { TableDef } from "../types";

export const containers: TableDef = {
  id: "containers",
  kind: "table",
  title: "Containers",
  question: "Which container uses what, and how near is it to its limits?",
  unit: "count",
  keys: [
    { label: "id", title: "Container" },
    { label: "instance", title: "Node", several: true },
  ],
  name: "{{pod}}/{{container}}|{{name}}",
  info: {
    expr: "container_last_seen{name!=\"\",container!=\"POD\",$nodes} $containers",
    labels: [
      { label: "image", title: "Image" },
      { label: "namespace", title: "Namespace" },
    ],
  },
  columns: [
    {
      title: "CPU cores",
      unit: "cores",
      expr:
        "sum by (id, instance) ($rate(container_cpu_usage_seconds_total{name!=\"\",container!=\"POD\",$nodes}[$window]) $containers)",
      spark: true,
    },
    {
      title: "Throttled",
      unit: "ratio",
      expr:
        "sum by (id, instance) ($rate(container_cpu_cfs_throttled_periods_total{name!=\"\",container!=\"POD\",$nodes}[$window]) $containers) / sum by (id, instance) ($rate(container_cpu_cfs_periods_total{name!=\"\",container!=\"POD\",$nodes}[$window]) $containers)",
      spark: true,
    },
    {
      title: "Working set",
      unit: "bytes",
      expr: "sum by (id, instance) (container_memory_working_set_bytes{name!=\"\",container!=\"POD\",$nodes} $containers)",
      spark: true,
    },
    {
      title: "Of the limit",
      unit: "ratio",
      expr:
        "sum by (id, instance) (container_memory_working_set_bytes{name!=\"\",container!=\"POD\",$nodes} $containers) / sum by (id, instance) (container_spec_memory_limit_bytes{name!=\"\",container!=\"POD\",$nodes} > 0)",
    },
    {
      title: "With cache",
      unit: "bytes",
      expr: "sum by (id, instance) (container_memory_usage_bytes{name!=\"\",container!=\"POD\",$nodes} $containers)",
    },
    {
      title: "Reads and writes",
      unit: "bytes_per_second",
      expr:
        "sum by (id, instance) ($rate(container_fs_reads_bytes_total{name!=\"\",container!=\"POD\",$nodes}[$window]) $containers) + sum by (id, instance) ($rate(container_fs_writes_bytes_total{name!=\"\",container!=\"POD\",$nodes}[$window]) $containers)",
      spark: true,
    },
    {
      title: "Threads",
      unit: "count",
      expr: "sum by (id, instance) (container_threads{name!=\"\",container!=\"POD\",$nodes} $containers)",
    },
    {
      title: "Running for",
      unit: "seconds",
      expr: "time() - max by (id, instance) (container_start_time_seconds{name!=\"\",container!=\"POD\",$nodes} $containers)",
    },
  ],
  sortBy: 0,
  help:
    "Means of the newest minute (of the newest point, where points are further apart); the line is the time range. Throttled is the share of periods in which the CPU quota ran out; the limit is that of memory, and a dash means that there is none. A container within a container is part of the outer one.",
  empty: { text: "No container ran at the end of this time range, or none that the filter chose." },
};
