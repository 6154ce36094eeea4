// SPDX-License-Identifier: Apache-2.0

// The overview: workloads, their CPU time and system calls, and the cost of monitoring.
import type { BarsDef, FigureDef, PanelDef, TableDef } from "../types";
import { pick } from "./pick";
import { SYSTEM } from "./system";

export const WORKLOADS: TableDef = {
  id: "workloads",
  kind: "table",
  title: "Workloads",
  question: "What does each workload use?",
  unit: "count",
  keys: [{ label: "workload", title: "Workload" }, { label: "instance", title: "Node", several: true }],
  info: { expr: "teescope_workload_info{$candidates}", labels: [{ label: "kind", title: "Kind" }, { label: "tee", title: "TEE" }] },
  columns: [
    { title: "CPU cores", unit: "cores", expr: "sum by (workload, instance) ($rate(teescope_cpu_seconds_total{$candidates}[$window]))", spark: true },
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
    { title: "Resident memory", unit: "bytes", expr: "sum by (workload, instance) (teescope_resident_memory_bytes{$candidates})", spark: true },
    { title: "Processes", unit: "count", expr: "sum by (workload, instance) (teescope_processes{$candidates})" },
  ],
  sortBy: 0,
  filters: true,
  help: "A workload is the container, systemd unit or program that a process belongs to. Values are means over the last minute, or over the last point where points are further apart. The line shows the time range. Select a row to filter every chart by it.",
  empty: { text: "No workload has been reported yet." },
};

const TOP_SYSCALLS: BarsDef = {
  id: "top-syscalls",
  kind: "bars",
  title: "Most frequent system calls",
  question: "Which system calls are made most often now?",
  unit: "per_second",
  queries: [{ expr: "sum by (syscall) ($rate(teescope_syscalls_total{$workloads}[$window]))", legend: "{{syscall}}" }],
  top: 8,
  help: "Mean over the last minute of the time range. The length of each bar is its share of all system calls shown.",
  empty: { text: "No system call was counted in the last minute.", probe: "sys" },
};

export const OVERVIEW: readonly PanelDef[] = [...pick(SYSTEM, "cpu-by-workload", "syscalls-by-workload"), TOP_SYSCALLS];

export const COST: readonly FigureDef[] = [
  {
    id: "self-share",
    kind: "figure",
    title: "Share of the machine",
    question: "How much of the machine does monitoring use?",
    unit: "ratio",
    query: { expr: "max(sum by (instance) (teescope_self_cpu_ratio{$nodes}))", legend: "share" },
    help: "The measured CPU time of the teescope process, and the estimated CPU time of its probes: the rate of each event times its cost. Above the budget teescope counts less. With several machines, the highest value is shown.",
    empty: { text: "Not known yet: teescope has just started." },
  },
  {
    id: "agent-cpu",
    kind: "figure",
    title: "CPU of teescope",
    question: "How much CPU does monitoring use?",
    unit: "cores",
    query: { expr: "sum($rate(process_cpu_seconds_total{$nodes}[$window]) and on (instance, job) teescope_build_info{$nodes})", legend: "CPU" },
    help: "CPU seconds per second of the teescope process: reading, scraping, storing and serving this page. The kernel charges time inside the probes to the process that they interrupt.",
    empty: { text: "teescope does not report its own CPU time." },
  },
  {
    id: "agent-memory",
    kind: "figure",
    title: "Memory of teescope",
    question: "How much memory does monitoring use?",
    unit: "bytes",
    query: { expr: "sum(process_resident_memory_bytes{$nodes} and on (instance, job) teescope_build_info{$nodes})", legend: "resident" },
    help: "Resident memory of the teescope process. The memory of its eBPF maps is not included; the status page shows it.",
    empty: { text: "teescope does not report its own memory." },
  },
  {
    id: "probe-cost",
    kind: "figure",
    title: "Cost of a probe run",
    question: "What does one event cost the workload?",
    unit: "seconds",
    query: {
      expr: "sum(teescope_bpf_program_sampled_run_seconds_total{$nodes}) / sum(teescope_bpf_program_sampled_runs_total{$nodes})",
      legend: "mean run",
    },
    help: "Mean run time of an eBPF program over all runs sampled since teescope started. The kernel's cost of calling the program is not included.",
    empty: { text: "No probe run has been sampled." },
  },
  {
    id: "scrape-duration",
    kind: "figure",
    title: "Scrape",
    question: "How long does one scrape take?",
    unit: "seconds",
    query: { expr: "max(scrape_duration_seconds{$nodes} and on (instance, job) teescope_build_info{$nodes})", legend: "duration" },
    help: "Time from requesting the metrics of an agent until all have arrived.",
    empty: { text: "Nothing has been scraped in this time range." },
  },
  {
    id: "series-count",
    kind: "figure",
    title: "Series",
    question: "How many samples does each scrape store?",
    unit: "count",
    query: { expr: "sum(scrape_samples_post_metric_relabeling{$nodes})", legend: "samples" },
    help: "Samples stored at each scrape, summed over all targets.",
    empty: { text: "Nothing has been scraped in this time range." },
  },
];
