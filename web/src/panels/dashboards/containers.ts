// SPDX-License-Identifier: Apache-2.0

// What containers use, and what their limits deny them.
import type { Section, TableDef } from "../types";

export const CONTAINER_TABLE: TableDef = {
  id: "containers",
  kind: "table",
  title: "Containers",
  question: "Which container uses what, and how near is it to its limits?",
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
  help: "Means of the newest minute (of the newest point, where points are further apart); the line is the time range. Throttled is the share of periods in which the CPU quota ran out; the limit is that of memory, and a dash means that there is none. A container within a container is part of the outer one.",
  empty: { text: "No container ran at the end of this time range, or none that the filter chose." },
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
        question: "Which container uses the processors?",
        unit: "cores",
        queries: [
          {
            expr: "sum by (name, pod, container, instance) ($rate(container_cpu_usage_seconds_total{name!=\"\",container!=\"POD\",$nodes}[$window]) $containers)",
            legend: "{{pod}}/{{container}}|{{pod}}|{{name}}",
          },
        ],
        top: 10,
        help: "User and system time together, in processors kept busy. A container within a container is part of the outer one.",
        empty: { text: "No container used CPU time in this time range." },
      },
      {
        id: "container-throttled-share",
        kind: "lines",
        title: "Throttled periods",
        question: "Which container runs into its CPU quota?",
        unit: "ratio",
        queries: [
          {
            expr: "sum by (name, pod, container, instance) ($rate(container_cpu_cfs_throttled_periods_total{name!=\"\",container!=\"POD\",$nodes}[$window]) $containers) / sum by (name, pod, container, instance) ($rate(container_cpu_cfs_periods_total{name!=\"\",container!=\"POD\",$nodes}[$window]) $containers)",
            legend: "{{pod}}/{{container}}|{{pod}}|{{name}}",
          },
        ],
        top: 10,
        thresholds: [{ at: 0.25, level: "warn" }], // as the alert has it
        help: "The share of the periods, 100 ms as a rule, in which the quota ran out and the container had to wait for the next one.",
        empty: { text: "No container with a CPU quota ran in this time range." },
      },
      {
        id: "container-throttled-time",
        kind: "lines",
        title: "Throttled time",
        question: "How much time do quotas cost?",
        unit: "seconds_per_second",
        queries: [
          {
            expr: "sum by (name, pod, container, instance) ($rate(container_cpu_cfs_throttled_seconds_total{name!=\"\",container!=\"POD\",$nodes}[$window]) $containers)",
            legend: "{{pod}}/{{container}}|{{pod}}|{{name}}",
          },
        ],
        top: 10,
        help: "Time in which threads were ready to run and held back, summed over processors.",
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
        question: "Which container holds the memory?",
        unit: "bytes",
        queries: [
          {
            expr: "sum by (name, pod, container, instance) (container_memory_working_set_bytes{name!=\"\",container!=\"POD\",$nodes} $containers)",
            legend: "{{pod}}/{{container}}|{{pod}}|{{name}}",
          },
        ],
        top: 10,
        help: "The working set: memory in use less the inactive page cache, which the kernel takes back first.",
        empty: { text: "No memory of containers was reported in this time range." },
      },
      {
        id: "container-memory-share",
        kind: "lines",
        title: "Memory against the limit",
        question: "Which container is near its memory limit?",
        unit: "ratio",
        queries: [
          {
            expr: "sum by (name, pod, container, instance) (container_memory_working_set_bytes{name!=\"\",container!=\"POD\",$nodes} $containers) / sum by (name, pod, container, instance) (container_spec_memory_limit_bytes{name!=\"\",container!=\"POD\",$nodes} > 0)",
            legend: "{{pod}}/{{container}}|{{pod}}|{{name}}",
          },
        ],
        top: 10,
        thresholds: [{ at: 0.9, level: "warn" }], // as the alert has it
        help: "The working set divided by the limit. At the limit the kernel takes pages back, which makes page faults, and then kills.",
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
        empty: { text: "No container is charged for enclave memory. It needs SGX and a kernel that counts it in the misc control group." },
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
        help: "Bytes that came from block devices. What the page cache answers is not in it.",
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
        help: "Bytes that went to block devices, at the time of the writeback.",
        empty: { text: "No container has written to a block device in this time range." },
      },
      {
        id: "container-network-received",
        kind: "lines",
        title: "Received",
        question: "Which container receives?",
        unit: "bytes_per_second",
        queries: [
          {
            expr: "sum by (name, pod, container, instance) ($rate(container_network_receive_bytes_total{name!=\"\",$nodes}[$window]) $containers)",
            legend: "{{pod}}/{{container}}|{{pod}}|{{name}}",
          },
        ],
        top: 10,
        help: "Of all interfaces in the network namespace of the container. Containers that share one, as in a pod, are counted once. Those on the network of the machine are not in it.",
        empty: { text: "No container with a network of its own ran in this time range." },
      },
      {
        id: "container-network-sent",
        kind: "lines",
        title: "Sent",
        question: "Which container sends?",
        unit: "bytes_per_second",
        queries: [
          {
            expr: "sum by (name, pod, container, instance) ($rate(container_network_transmit_bytes_total{name!=\"\",$nodes}[$window]) $containers)",
            legend: "{{pod}}/{{container}}|{{pod}}|{{name}}",
          },
        ],
        top: 10,
        help: "Of all interfaces in the network namespace of the container. Containers that share one, as in a pod, are counted once. Those on the network of the machine are not in it.",
        empty: { text: "No container with a network of its own ran in this time range." },
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
        question: "Which container waits for a processor?",
        unit: "ratio",
        queries: [
          {
            expr: "sum by (name, pod, container, instance) ($rate(container_pressure_cpu_waiting_seconds_total{name!=\"\",container!=\"POD\",$nodes}[$window]) $containers)",
            legend: "{{pod}}/{{container}}|{{pod}}|{{name}}",
          },
        ],
        top: 10,
        help: "Pressure stall information (PSI): the share of time in which at least one task of the container waited.",
        empty: { text: "No container reported its pressure. It needs control groups v2 and a kernel with PSI." },
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
        empty: { text: "No container reported its pressure. It needs control groups v2 and a kernel with PSI." },
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
        empty: { text: "No container reported its pressure. It needs control groups v2 and a kernel with PSI." },
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
        help: "At each scrape.",
        empty: { text: "No threads of containers were reported in this time range." },
      },
    ],
  },
];
