// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const pageFaultsByReason: ChartDef = {
  id: "page-faults-by-reason",
  kind: "stacked",
  title: "Page faults by reason",
  question: "Why does memory access trap into the kernel?",
  unit: "per_second",
  queries: [
    {
      expr: "sum by (reason) ($rate(teescope_page_faults_total{$workloads}[$window]))",
      legend: "{{reason}}",
    },
  ],
  top: 10,
  help:
    "From the error code of the processor: no_page_found is first touch or paged out; write_prot_fault is mostly copy-on-write; sgx and rmp are raised by the TEE itself.",
  empty: { text: "No page fault was counted in this time range.", probe: "fault" },
};
