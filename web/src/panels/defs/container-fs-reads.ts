// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const containerFsReads: ChartDef = {
  id: "container-fs-reads",
  kind: "lines",
  title: "Read from devices",
  question: "Which container reads from disks?",
  unit: "bytes_per_second",
  queries: [
    {
      expr:
        "sum by (name, pod, container, instance) ($rate(container_fs_reads_bytes_total{name!=\"\",container!=\"POD\",$nodes}[$window]) $containers)",
      legend: "{{pod}}/{{container}}|{{pod}}|{{name}}",
    },
  ],
  top: 10,
  help: "Bytes that came from block devices. What the page cache answers is not in it.",
  empty: { text: "No container has read from a block device in this time range." },
};
