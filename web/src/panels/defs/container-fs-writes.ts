// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const containerFsWrites: ChartDef = {
  id: "container-fs-writes",
  kind: "lines",
  title: "Written to devices",
  question: "Which container writes to disks?",
  unit: "bytes_per_second",
  queries: [
    {
      expr:
        "sum by (name, pod, container, instance) ($rate(container_fs_writes_bytes_total{name!=\"\",container!=\"POD\",$nodes}[$window]) $containers)",
      legend: "{{pod}}/{{container}}|{{pod}}|{{name}}",
    },
  ],
  top: 10,
  help: "Bytes that went to block devices, at the time of the writeback.",
  empty: { text: "No container has written to a block device in this time range." },
};
