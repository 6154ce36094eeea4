// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

const OF = "{fstype!~\"tmpfs|ramfs|overlay|squashfs|iso9660\",$nodes}";

/** As df reckons it: of what is used and what programs may still use. */
export const USED =
  `max by (mountpoint) (1 - node_filesystem_avail_bytes${OF} / (node_filesystem_size_bytes${OF} - node_filesystem_free_bytes${OF} + node_filesystem_avail_bytes${OF}))`;

export const nodeFilesystemUse: ChartDef = {
  id: "node-filesystem-use",
  kind: "lines",
  title: "Use of file systems",
  question: "Which file system fills up?",
  unit: "ratio",
  queries: [
    {
      expr: USED,
      legend: "{{mountpoint}}",
    },
  ],
  top: 10,
  help:
    "What is used, as a share of that and of what programs may still use, as df shows it: what is reserved for root is in neither. File systems in memory and images are left out.",
  empty: { text: "No file system was reported in this time range." },
};
