// SPDX-License-Identifier: Apache-2.0

// The panels of Compare: those over time that can be filtered by workload. It defines none of its own.
import { SYSTEM } from "./dashboards/system";
import { TEE } from "./dashboards/tee";
import type { ChartDef } from "./types";

/** Panels whose series are parts of another compared panel. */
const SAID_ELSEWHERE = ["page-faults-by-mode", "cpu-by-mode", "syscall-errors", "tee-transitions-by-workload"];

export const COMPARED: readonly ChartDef[] = [...SYSTEM, ...TEE]
  .flatMap((section) => section.panels)
  .filter((def): def is ChartDef => def.kind === "lines" || def.kind === "stacked")
  .filter((def) => !SAID_ELSEWHERE.includes(def.id) && def.queries.some((q) => q.expr.includes("$workloads")));
