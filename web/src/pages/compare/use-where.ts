// SPDX-License-Identifier: Apache-2.0

// The workloads that can be compared, and their machines.
import { useMemo } from "preact/hooks";
import { MOST_SERIES } from "../../lib/facets";
import { useSession } from "../../lib/session";
import { useStore } from "../../lib/store";
import { nodesKey } from "../../lib/view-keys";
import { type Loaded, useRequest, useShown } from "../../panels/use-data";
import { type NodeWorkload, workloadsOf } from "./node-workloads";

/** Returns the workloads of both times, within the filter of nodes. */
export function useWhere(offset: number): Loaded<NodeWorkload[]> {
  const { interval } = useShown();
  const nodes = nodesKey(useStore(useSession().view));
  const { value, ...rest } = useRequest(
    (s, signal) => s.client.series([`teescope_workload_info{${nodes}}`], interval.from - offset, interval.to, MOST_SERIES, signal),
    `compare ${interval.to - interval.from} ${offset} ${nodes}`,
    "",
    true,
  );
  const candidates = useMemo(() => value && workloadsOf(value), [value]);
  return candidates ? { ...rest, value: candidates } : rest;
}
