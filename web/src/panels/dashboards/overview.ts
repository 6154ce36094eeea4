// SPDX-License-Identifier: Apache-2.0

// The first page: the workloads, their CPU time and system calls, and what monitoring costs.
import type { BarsDef, FigureDef, PanelDef, TableDef } from "../types";
import { pick } from "./pick";
import { SYSTEM } from "./system";

export const WORKLOADS: TableDef = {
  id: "workloads",
  kind: "table",
  title: "Workloads",
  question: "Who asks the kernel for what?",
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
  help: "A workload is the container, systemd unit or program that a process belongs to. Figures are means of the newest minute (of the newest point, where points are further apart); the line is the time range. Choose a row to filter every chart by it. The idle task is left out.",
  empty: { text: "No workload has been reported yet." },
};

const TOP_SYSCALLS: BarsDef = {
  id: "top-syscalls",
  kind: "bars",
  title: "Commonest system calls",
  question: "What is asked of the kernel right now?",
  unit: "per_second",
  queries: [{ expr: "sum by (syscall) ($rate(teescope_syscalls_total{$workloads}[$window]))", legend: "{{syscall}}" }],
  top: 8,
  help: "Mean of the newest minute of the time range. Each bar is a share of all system calls shown.",
  empty: { text: "No system call was counted in the newest minute.", probe: "sys" },
};

export const OVERVIEW: readonly PanelDef[] = [...pick(SYSTEM, "cpu-by-workload", "syscalls-by-workload"), TOP_SYSCALLS];

export const COST: readonly FigureDef[] = [
  {
    id: "self-share",
    kind: "figure",
    title: "Share of the machine",
    question: "What part of the machine does watching take from the workloads?",
    unit: "ratio",
    query: { expr: "max(sum by (instance) (teescope_self_cpu_ratio{$nodes}))", legend: "share" },
    help: "CPU time of this program, measured, and of the probes, reckoned from how often each event comes and what it costs where it happens. Above the budget (overhead.budget) less is watched. Of several machines, the one with the most.",
    empty: { text: "Not known before the first seconds of watching have passed." },
  },
  {
    id: "agent-cpu",
    kind: "figure",
    title: "CPU of teescope",
    question: "How much processor does watching take?",
    unit: "cores",
    query: { expr: "sum($rate(process_cpu_seconds_total{$nodes}[$window]) and on (instance, job) teescope_build_info{$nodes})", legend: "CPU" },
    help: "CPU seconds in a second of the teescope process itself: reading, scraping, storing and answering this page. Time inside the probes is charged to whom they interrupt.",
    empty: { text: "teescope does not report its own CPU time." },
  },
  {
    id: "agent-memory",
    kind: "figure",
    title: "Memory of teescope",
    question: "How much memory does watching take?",
    unit: "bytes",
    query: { expr: "sum(process_resident_memory_bytes{$nodes} and on (instance, job) teescope_build_info{$nodes})", legend: "resident" },
    help: "Resident memory of the teescope process; memory of its kernel maps comes on top and is on the status page.",
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
    help: "Mean run time of an in-kernel program over all runs that were sampled since teescope started; the kernel's own cost of calling it is not in it.",
    empty: { text: "No probe run has been sampled." },
  },
  {
    id: "scrape-duration",
    kind: "figure",
    title: "Scrape",
    question: "How long does one collection take?",
    unit: "seconds",
    query: { expr: "max(scrape_duration_seconds{$nodes} and on (instance, job) teescope_build_info{$nodes})", legend: "duration" },
    help: "Time from asking the agent for its metrics to having them all.",
    empty: { text: "Nothing has been scraped in this time range." },
  },
  {
    id: "series-count",
    kind: "figure",
    title: "Series",
    question: "How many numbers does each collection bring?",
    unit: "count",
    query: { expr: "sum(scrape_samples_post_metric_relabeling{$nodes})", legend: "samples" },
    help: "Samples stored at each scrape, all targets together.",
    empty: { text: "Nothing has been scraped in this time range." },
  },
];
