// SPDX-License-Identifier: Apache-2.0

// teescope itself: collectors, build, probes, eBPF programs and maps.
import type { TableDef } from "../types";

export const STATUS: readonly TableDef[] = [
  {
    id: "collectors",
    kind: "table",
    title: "Collectors",
    question: "Did every collector succeed?",
    unit: "yes_no",
    keys: [{ label: "collector", title: "Collector" }, { label: "instance", title: "Instance" }],
    columns: [
      { title: "Succeeded", unit: "yes_no", expr: "teescope_collector_success{$nodes}" },
      { title: "Took", unit: "seconds", expr: "teescope_collector_duration_seconds{$nodes}", spark: true },
    ],
    help: "Each collector reports whether it succeeded. A failing collector does not affect the others.",
    empty: { text: "No collector has reported. Is the target up?" },
  },
  {
    id: "build",
    kind: "table",
    title: "Build",
    question: "Which version of teescope runs?",
    unit: "yes_no",
    keys: [
      { label: "instance", title: "Instance" },
      { label: "version", title: "Version" },
      { label: "revision", title: "Revision" },
      { label: "goversion", title: "Go" },
    ],
    columns: [
      {
        title: "Running for",
        unit: "seconds",
        expr: "max by (instance, version, revision, goversion) (teescope_build_info{$nodes} * on (instance, job) group_left () max by (instance, job) (time() - process_start_time_seconds{$nodes}))",
      },
    ],
    help: "Reported by each agent. The last column is the uptime of its process.",
    empty: { text: "No agent has reported its build." },
  },
  {
    id: "probes",
    kind: "table",
    title: "Probes",
    question: "Which kernel events are counted, and with which mechanism?",
    unit: "yes_no",
    keys: [{ label: "probe", title: "Probe" }, { label: "instance", title: "Instance" }],
    info: { expr: "teescope_probe_attached{$nodes}", labels: [{ label: "mechanism", title: "Mechanism" }, { label: "reason", title: "Remark" }] },
    columns: [
      { title: "Attached", unit: "yes_no", expr: "max by (probe, instance) (teescope_probe_attached{$nodes})" },
      { title: "Duty cycle", unit: "ratio", expr: "max by (probe, instance) (teescope_sampling_ratio{$nodes})" },
    ],
    help: "Without a mechanism that can be attached, the metrics of a probe are absent. The duty cycle is the share of the time in which a probe counts; a dash means always. Below 100 % the counts are scaled up, and short bursts may be missed.",
    empty: { text: "No probe has reported. Is the target up?" },
  },
  {
    id: "programs",
    kind: "table",
    title: "eBPF programs",
    question: "What does each probe cost?",
    unit: "seconds",
    keys: [{ label: "program", title: "Program" }],
    columns: [
      { title: "Instructions", unit: "count", expr: "sum by (program) (teescope_bpf_program_instructions{$nodes})" },
      {
        title: "Mean run",
        unit: "seconds",
        expr: "sum by (program) (teescope_bpf_program_sampled_run_seconds_total{$nodes}) / sum by (program) (teescope_bpf_program_sampled_runs_total{$nodes} > 0)",
      },
      { title: "Missed runs", unit: "per_second", expr: "sum by (program) ($rate(teescope_bpf_program_missed_runs_total{$nodes}[$window]))" },
      { title: "Sampled runs", unit: "count", expr: "sum by (program) (teescope_bpf_program_sampled_runs_total{$nodes})" },
    ],
    sortBy: 0,
    help: "Instructions as verified by the kernel. The run time is sampled: the kernel's own statistics are enabled for short periods only, because they cost more than the probes. The events of missed runs are not counted: the kernel did not run the program for them.",
    empty: { text: "No eBPF program has reported its cost." },
  },
  {
    id: "maps",
    kind: "table",
    title: "eBPF maps",
    question: "How much kernel memory do the counters use?",
    unit: "bytes",
    keys: [{ label: "map", title: "Map" }],
    columns: [{ title: "Memory", unit: "bytes", expr: "sum by (map) (teescope_bpf_map_memory_bytes{$nodes})" }],
    sortBy: 0,
    help: "Memory that the kernel accounts to each map.",
    empty: { text: "No eBPF map has reported its memory." },
  },
];
