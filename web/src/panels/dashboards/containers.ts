// SPDX-License-Identifier: Apache-2.0

// Resources of containers and the effects of their limits.
import type { Section, TableDef } from "../types";

export const CONTAINER_TABLE: TableDef = {
  id: "containers",
  kind: "table",
  title: "Containers",
  question: "What does each container use, and how close is it to its limits?",
  unit: "count",
  keys: [{ label: "id", title: "Container" }, { label: "instance", title: "Node", several: true }],
  name: "{{pod}}/{{container}}|{{name}}",
  info: {
    expr: "container_last_seen{name!=\"\",container!=\"POD\",$nodes} $containers",
    labels: [{ label: "image", title: "Image" }, { label: "namespace", title: "Namespace" }],
  },
  columns: [
    {
      title: "CPU cores",
      unit: "cores",
      expr: "sum by (id, instance) ($rate(container_cpu_usage_seconds_total{name!=\"\",container!=\"POD\",$nodes}[$window]) $containers)",
      spark: true,
    },
    {
      title: "Throttled",
      unit: "ratio",
      expr: "sum by (id, instance) ($rate(container_cpu_cfs_throttled_periods_total{name!=\"\",container!=\"POD\",$nodes}[$window]) $containers) / sum by (id, instance) ($rate(container_cpu_cfs_periods_total{name!=\"\",container!=\"POD\",$nodes}[$window]) $containers)",
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
      expr: "sum by (id, instance) (container_memory_working_set_bytes{name!=\"\",container!=\"POD\",$nodes} $containers) / sum by (id, instance) (container_spec_memory_limit_bytes{name!=\"\",container!=\"POD\",$nodes} > 0)",
    },
    {
      title: "With cache",
      unit: "bytes",
      expr: "sum by (id, instance) (container_memory_usage_bytes{name!=\"\",container!=\"POD\",$nodes} $containers)",
    },
    {
      title: "Reads and writes",
      unit: "bytes_per_second",
      expr: "sum by (id, instance) ($rate(container_fs_reads_bytes_total{name!=\"\",container!=\"POD\",$nodes}[$window]) $containers) + sum by (id, instance) ($rate(container_fs_writes_bytes_total{name!=\"\",container!=\"POD\",$nodes}[$window]) $containers)",
      spark: true,
    },
    { title: "Threads", unit: "count", expr: "sum by (id, instance) (container_threads{name!=\"\",container!=\"POD\",$nodes} $containers)" },
    {
      title: "Running for",
      unit: "seconds",
      expr: "time() - max by (id, instance) (container_start_time_seconds{name!=\"\",container!=\"POD\",$nodes} $containers)",
    },
  ],
  sortBy: 0,
  help: "Values are means over the last minute, or over the last point where points are further apart. The line shows the time range. Throttled is the share of periods in which the CPU quota ran out. A dash means that there is no memory limit. A nested container is included in the outer one.",
  empty: { text: "No container ran at the end of this time range, or the filter selects none." },
};

export const CONTAINERS: readonly Section[] = [
  {
    id: "container-processor",
    title: "Processor",
    panels: [
      {
        id: "container-cpu",
        kind: "stacked",
        title: "CPU by container",
        question: "Which container uses the CPU?",
        unit: "cores",
        queries: [
          {
            expr: "sum by (name, pod, container, instance) ($rate(container_cpu_usage_seconds_total{name!=\"\",container!=\"POD\",$nodes}[$window]) $containers)",
            legend: "{{pod}}/{{container}}|{{pod}}|{{name}}",
          },
        ],
        top: 10,
        help: "User and system time, summed, as busy CPU cores. A nested container is also included in the outer one.",
        empty: { text: "No container used CPU time in this time range." },
      },
      {
        id: "container-throttled-share",
        kind: "lines",
        title: "Throttled periods",
        question: "Which container reaches its CPU quota?",
        unit: "ratio",
        queries: [
          {
            expr: "sum by (name, pod, container, instance) ($rate(container_cpu_cfs_throttled_periods_total{name!=\"\",container!=\"POD\",$nodes}[$window]) $containers) / sum by (name, pod, container, instance) ($rate(container_cpu_cfs_periods_total{name!=\"\",container!=\"POD\",$nodes}[$window]) $containers)",
            legend: "{{pod}}/{{container}}|{{pod}}|{{name}}",
          },
        ],
        top: 10,
        thresholds: [{ at: 0.25, level: "warn" }], // the same as the alert
        help: "The share of the periods (usually 100 ms) in which the quota ran out and the container had to wait for the next period.",
        empty: { text: "No container with a CPU quota ran in this time range." },
      },
      {
        id: "container-throttled-time",
        kind: "lines",
        title: "Throttled time",
        question: "How much time do CPU quotas cost?",
        unit: "seconds_per_second",
        queries: [
          {
            expr: "sum by (name, pod, container, instance) ($rate(container_cpu_cfs_throttled_seconds_total{name!=\"\",container!=\"POD\",$nodes}[$window]) $containers)",
            legend: "{{pod}}/{{container}}|{{pod}}|{{name}}",
          },
        ],
        top: 10,
        help: "Time in which threads were runnable but throttled, summed over CPUs.",
        empty: { text: "No container with a CPU quota ran in this time range." },
      },
    ],
  },
  {
    id: "container-memory",
    title: "Memory",
    panels: [
      {
        id: "container-memory",
        kind: "stacked",
        title: "Memory by container",
        question: "Which container uses memory?",
        unit: "bytes",
        queries: [
          {
            expr: "sum by (name, pod, container, instance) (container_memory_working_set_bytes{name!=\"\",container!=\"POD\",$nodes} $containers)",
            legend: "{{pod}}/{{container}}|{{pod}}|{{name}}",
          },
        ],
        top: 10,
        help: "The working set: used memory minus the inactive page cache, which the kernel reclaims first.",
        empty: { text: "No memory of containers was reported in this time range." },
      },
      {
        id: "container-memory-share",
        kind: "lines",
        title: "Memory use of the limit",
        question: "Which container is close to its memory limit?",
        unit: "ratio",
        queries: [
          {
            expr: "sum by (name, pod, container, instance) (container_memory_working_set_bytes{name!=\"\",container!=\"POD\",$nodes} $containers) / sum by (name, pod, container, instance) (container_spec_memory_limit_bytes{name!=\"\",container!=\"POD\",$nodes} > 0)",
            legend: "{{pod}}/{{container}}|{{pod}}|{{name}}",
          },
        ],
        top: 10,
        thresholds: [{ at: 0.9, level: "warn" }], // the same as the alert
        help: "The working set divided by the limit. At the limit the kernel first reclaims pages, which causes page faults, and then kills processes.",
        empty: { text: "No container has a memory limit." },
      },
      {
        id: "container-epc",
        kind: "stacked",
        title: "Enclave memory by container",
        question: "Which container holds enclave memory?",
        unit: "bytes",
        queries: [
          {
            expr: "sum by (name, pod, container, instance) (container_misc_usage{resource=\"sgx_epc\",name!=\"\",container!=\"POD\",$nodes} $containers)",
            legend: "{{pod}}/{{container}}|{{pod}}|{{name}}",
          },
        ],
        top: 10,
        help: "Pages of the enclave page cache (EPC) charged to the control group of the container.",
        empty: { text: "No container is charged for enclave memory. This needs SGX and a kernel that accounts it in the misc control group." },
      },
    ],
  },
  {
    id: "container-traffic",
    title: "Disks and network",
    panels: [
      {
        id: "container-fs-reads",
        kind: "lines",
        title: "Read from devices",
        question: "Which container reads from disks?",
        unit: "bytes_per_second",
        queries: [
          {
            expr: "sum by (name, pod, container, instance) ($rate(container_fs_reads_bytes_total{name!=\"\",container!=\"POD\",$nodes}[$window]) $containers)",
            legend: "{{pod}}/{{container}}|{{pod}}|{{name}}",
          },
        ],
        top: 10,
        help: "Bytes read from block devices. Reads served by the page cache are not included.",
        empty: { text: "No container has read from a block device in this time range." },
      },
      {
        id: "container-fs-writes",
        kind: "lines",
        title: "Written to devices",
        question: "Which container writes to disks?",
        unit: "bytes_per_second",
        queries: [
          {
            expr: "sum by (name, pod, container, instance) ($rate(container_fs_writes_bytes_total{name!=\"\",container!=\"POD\",$nodes}[$window]) $containers)",
            legend: "{{pod}}/{{container}}|{{pod}}|{{name}}",
          },
        ],
        top: 10,
        help: "Bytes written to block devices, at the time of writeback.",
        empty: { text: "No container has written to a block device in this time range." },
      },
      {
        id: "container-network-received",
        kind: "lines",
        title: "Received",
        question: "Which container receives network traffic?",
        unit: "bytes_per_second",
        queries: [
          {
            expr: "sum by (name, pod, container, instance) ($rate(container_network_receive_bytes_total{name!=\"\",$nodes}[$window]) $containers)",
            legend: "{{pod}}/{{container}}|{{pod}}|{{name}}",
          },
        ],
        top: 10,
        help: "Summed over all interfaces in the network namespace of the container. Containers that share a namespace, as in a pod, are counted once. Containers in the network namespace of the host are not included.",
        empty: { text: "No container with its own network namespace ran in this time range." },
      },
      {
        id: "container-network-sent",
        kind: "lines",
        title: "Sent",
        question: "Which container sends network traffic?",
        unit: "bytes_per_second",
        queries: [
          {
            expr: "sum by (name, pod, container, instance) ($rate(container_network_transmit_bytes_total{name!=\"\",$nodes}[$window]) $containers)",
            legend: "{{pod}}/{{container}}|{{pod}}|{{name}}",
          },
        ],
        top: 10,
        help: "Summed over all interfaces in the network namespace of the container. Containers that share a namespace, as in a pod, are counted once. Containers in the network namespace of the host are not included.",
        empty: { text: "No container with its own network namespace ran in this time range." },
      },
    ],
  },
  {
    id: "container-waiting",
    title: "Pressure and threads",
    panels: [
      {
        id: "container-pressure-cpu",
        kind: "lines",
        title: "Waiting for CPU",
        question: "Which container waits for a CPU?",
        unit: "ratio",
        queries: [
          {
            expr: "sum by (name, pod, container, instance) ($rate(container_pressure_cpu_waiting_seconds_total{name!=\"\",container!=\"POD\",$nodes}[$window]) $containers)",
            legend: "{{pod}}/{{container}}|{{pod}}|{{name}}",
          },
        ],
        top: 10,
        help: "Pressure stall information (PSI): the share of time in which at least one task of the container waited.",
        empty: { text: "No container reported its pressure. This needs control groups v2 and a kernel with PSI." },
      },
      {
        id: "container-pressure-memory",
        kind: "lines",
        title: "Waiting for memory",
        question: "Which container waits for memory?",
        unit: "ratio",
        queries: [
          {
            expr: "sum by (name, pod, container, instance) ($rate(container_pressure_memory_waiting_seconds_total{name!=\"\",container!=\"POD\",$nodes}[$window]) $containers)",
            legend: "{{pod}}/{{container}}|{{pod}}|{{name}}",
          },
        ],
        top: 10,
        help: "Pressure stall information (PSI): the share of time in which at least one task of the container waited.",
        empty: { text: "No container reported its pressure. This needs control groups v2 and a kernel with PSI." },
      },
      {
        id: "container-pressure-io",
        kind: "lines",
        title: "Waiting for I/O",
        question: "Which container waits for disks?",
        unit: "ratio",
        queries: [
          {
            expr: "sum by (name, pod, container, instance) ($rate(container_pressure_io_waiting_seconds_total{name!=\"\",container!=\"POD\",$nodes}[$window]) $containers)",
            legend: "{{pod}}/{{container}}|{{pod}}|{{name}}",
          },
        ],
        top: 10,
        help: "Pressure stall information (PSI): the share of time in which at least one task of the container waited.",
        empty: { text: "No container reported its pressure. This needs control groups v2 and a kernel with PSI." },
      },
      {
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
        help: "The number at each scrape.",
        empty: { text: "No threads of containers were reported in this time range." },
      },
    ],
  },
];
