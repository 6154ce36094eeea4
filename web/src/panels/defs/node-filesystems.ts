// SPDX-License-Identifier: Apache-2.0
import type { TableDef } from "../types";
import { USED } from "./node-filesystem-use";

export const nodeFilesystems: TableDef = {
  id: "node-filesystems",
  kind: "table",
  title: "File systems",
  question: "How much room is left?",
  unit: "bytes",
  keys: [
    { label: "mountpoint", title: "Mounted at" },
  ],
  info: {
    expr: "node_filesystem_size_bytes{fstype!~\"tmpfs|ramfs|overlay|squashfs|iso9660\",$nodes}",
    labels: [
      { label: "device", title: "Device" },
      { label: "fstype", title: "Type" },
    ],
  },
  columns: [
    {
      title: "Used",
      unit: "ratio",
      expr: USED,
    },
    {
      title: "Free",
      unit: "bytes",
      expr: "min by (mountpoint) (node_filesystem_avail_bytes{fstype!~\"tmpfs|ramfs|overlay|squashfs|iso9660\",$nodes})",
    },
    {
      title: "Size",
      unit: "bytes",
      expr: "max by (mountpoint) (node_filesystem_size_bytes{fstype!~\"tmpfs|ramfs|overlay|squashfs|iso9660\",$nodes})",
    },
    {
      title: "Inodes used",
      unit: "ratio",
      expr:
        "max by (mountpoint) (1 - node_filesystem_files_free{fstype!~\"tmpfs|ramfs|overlay|squashfs|iso9660\",$nodes} / (node_filesystem_files{fstype!~\"tmpfs|ramfs|overlay|squashfs|iso9660\",$nodes} > 0))",
    },
  ],
  sortBy: 0,
  help:
    "Free is what programs may still use, and used the share that df shows: what is reserved for root is in neither. File systems in memory and images are left out. Of several machines the fullest is shown.",
  empty: { text: "No file system was reported in this time range." },
};
