// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const nodePaging: ChartDef = {
  id: "node-paging",
  kind: "lines",
  title: "Paging",
  question: "Does memory go to and from disks?",
  unit: "bytes_per_second",
  queries: [
    { expr: "1024 * sum($rate(node_vmstat_pgpgin{$nodes}[$window]))", legend: "read in" },
    { expr: "1024 * sum($rate(node_vmstat_pgpgout{$nodes}[$window]))", legend: "written out" },
    { expr: "4096 * sum($rate(node_vmstat_pswpin{$nodes}[$window]))", legend: "swapped in" },
    { expr: "4096 * sum($rate(node_vmstat_pswpout{$nodes}[$window]))", legend: "swapped out" },
  ],
  help:
    "Read in and written out are all traffic between memory and block devices, files included. Swap is counted in pages, taken as 4 KiB.",
  empty: { text: "No metrics of the machine (node_*) in this time range." },
};
