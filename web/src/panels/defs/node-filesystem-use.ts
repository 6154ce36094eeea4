// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const nodeFilesystemUse: ChartDef = {
  id: "node-filesystem-use",
  kind: "lines",
  title: "Use of file systems",
  question: "Which file system fills up?",
  unit: "ratio",
  queries: [
    {
      expr:
        "max by (mountpoint) (1 - node_filesystem_avail_bytes{fstype!~\"tmpfs|ramfs|overlay|squashfs|iso9660\",$nodes} / node_filesystem_size_bytes{fstype!~\"tmpfs|ramfs|overlay|squashfs|iso9660\",$nodes})",
      legend: "{{mountpoint}}",
    },
  ],
  top: 10,
  help:
    "The share that programs cannot use any more: what is reserved for root counts as used. File systems in memory and images are left out.",
  empty: { text: "No file system was reported in this time range." },
};
