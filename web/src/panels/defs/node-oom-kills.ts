// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const nodeOomKills: ChartDef = {
  id: "node-oom-kills",
  kind: "lines",
  title: "Killed for want of memory",
  question: "Did the kernel kill?",
  unit: "per_second",
  queries: [
    { expr: "sum($rate(node_vmstat_oom_kill{$nodes}[$window]))", legend: "killed" },
  ],
  help: "Processes chosen by the OOM killer, those at the memory limit of a container included.",
  empty: { text: "No metrics of the machine (node_*) in this time range." },
};
