// SPDX-License-Identifier: Apache-2.0

// Which workloads the filters of containers, pods and runtimes mean: no figure
// is labelled with these, so that what is learned later breaks no series. The
// info families are asked over the whole shown time, so that a workload that
// has ended is found as well.
import { useEffect } from "preact/hooks";
import { mappings } from "../lib/filters";
import { shownInterval, useSession } from "../lib/session";
import { useStore } from "../lib/store";
import { mappingKey } from "../lib/view-keys";
import type { ApiError } from "../api/errors";
import { useAsk } from "./use-data";

/** Workloads asked for at most: the matcher of that many is what a question can carry. */
export const MOST_MAPPED = 1000;

/** Seconds between two questions. */
const EVERY_SECONDS = 15;

/** The names that are in every list. */
export function inAll(lists: readonly (readonly string[])[]): string[] {
  const [first = [], ...rest] = lists;
  return first.filter((name) => rest.every((list) => list.includes(name)));
}

/** Keeps the session's mapping; one component of the page does so. Gives what is known, or why it is not. */
export function useMapping(): { workloads: readonly string[] | undefined; error: ApiError | undefined } {
  const session = useSession();
  const view = useStore(session.view);
  const now = useStore(session.now);
  const key = mappingKey(view);
  const { from, to } = shownInterval(view, now);
  const loaded = useAsk(
    async (s, signal) => {
      const ask = mappings(view.filters).map((m) => s.client.labelValues("workload", m.selectors, from, to, signal, MOST_MAPPED));
      return { key, workloads: inAll(await Promise.all(ask)) };
    },
    key,
    view.fixed ? "" : String(Math.floor(to / EVERY_SECONDS)),
    key !== "",
  );
  const { value } = loaded;
  useEffect(() => {
    const kept = session.mapped.get();
    if (value && (kept?.key !== value.key || kept.workloads.join("\n") !== value.workloads.join("\n"))) session.mapped.set(value);
  }, [session, value]);
  return { workloads: key === "" || loaded.stale ? undefined : value?.workloads, error: key === "" ? undefined : loaded.error };
}
