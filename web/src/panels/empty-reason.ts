// SPDX-License-Identifier: Apache-2.0

// Explains an empty panel by the state of the probes that it needs.
import type { InstantSample } from "../api/types";
import { groupReasons } from "../lib/words";
import { useInstant } from "./use-data";

/** Returns a sentence about probes that are not attached, if there are any. */
export function explainProbes(samples: readonly InstantSample[]): string | undefined {
  const missing = samples.filter((s) => s.value[1] === 0);
  if (missing.length === 0) return undefined;
  const reasons = missing.map((s) => ({ name: s.metric["probe"] ?? "a probe", reason: s.metric["reason"] ?? "" }));
  return `Not attached: ${groupReasons(reasons)}.`;
}

/** Returns the query for the state of probes. */
export function probeExpr(probe: string): string {
  return `teescope_probe_attached{probe=~".*(${probe}).*",$nodes} == 0`;
}

export function useEmptyReason(probe: string | undefined): string | undefined {
  const loaded = useInstant([probeExpr(probe ?? "")], probe !== undefined);
  return explainProbes(loaded.value?.[0] ?? []);
}
