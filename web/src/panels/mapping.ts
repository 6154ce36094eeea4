// SPDX-License-Identifier: Apache-2.0

// The workloads of the filters of containers, pods and runtimes. Values have no such labels, so that a label that
// becomes known later breaks no series. The info families are queried over the whole shown time, which includes
// workloads that have ended.
import { useEffect } from "preact/hooks";
import { mappings } from "../lib/filters";
import { shownInterval, useSession } from "../lib/session";
import { useStore } from "../lib/store";
import { mappingKey } from "../lib/view-keys";
import type { ApiError } from "../api/errors";
import { useRequest } from "./use-data";

/** Limit of workloads. A matcher of more names is too long for a query. */
export const MOST_MAPPED = 1000;

/** Seconds between two queries. */
const EVERY_SECONDS = 15;

/** Returns the names that are in every list. */
export function inAll(lists: readonly (readonly string[])[]): string[] {
  const [first = [], ...rest] = lists;
  return first.filter((name) => rest.every((list) => list.includes(name)));
}

/** Updates the session's mapping. Only one component of the page calls it. Returns the workloads or the error. */
export function useMapping(): { workloads: readonly string[] | undefined; error: ApiError | undefined } {
  const session = useSession();
  const view = useStore(session.view);
  const now = useStore(session.now);
  const key = mappingKey(view);
  const { from, to } = shownInterval(view, now);
  const loaded = useRequest(
    async (s, signal) => {
      const lists = mappings(view.filters).map((m) => s.client.labelValues("workload", m.selectors, from, to, signal, MOST_MAPPED));
      return { key, workloads: inAll(await Promise.all(lists)) };
    },
    key,
    view.fixed ? "" : String(Math.floor(to / EVERY_SECONDS)),
    key !== "",
  );
  const { value } = loaded;
  useEffect(() => {
    const current = session.mapped.get();
    if (value && (current?.key !== value.key || current.workloads.join("\n") !== value.workloads.join("\n"))) session.mapped.set(value);
  }, [session, value]);
  return { workloads: key === "" || loaded.stale ? undefined : value?.workloads, error: key === "" ? undefined : loaded.error };
}
