// SPDX-License-Identifier: Apache-2.0
import type { FigureDef } from "../types";

export const agentMemory: FigureDef = {
  id: "agent-memory",
  kind: "figure",
  title: "Memory of teescope",
  question: "How much memory does watching take?",
  unit: "bytes",
  query: { expr: "sum(process_resident_memory_bytes{$nodes} and on (instance, job) teescope_build_info{$nodes})", legend: "resident" },
  help:
    "Resident memory of the teescope process; memory of its kernel maps comes on top and is on the status page.",
  empty: { text: "teescope does not report its own memory." },
};
