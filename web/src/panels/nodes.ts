// SPDX-License-Identifier: Apache-2.0

// On which machines the shown workloads are: where there are several, all that
// is named after a workload has to say on which one it is.
import { useEffect } from "preact/hooks";
import { shownInterval, useSession } from "../lib/session";
import { useStore } from "../lib/store";
import { nodesKey } from "../lib/view-keys";
import { useAsk } from "./use-data";

/** Machines asked for at most: whether there are several is what has to be known. */
const MOST_NODES = 1000;

/** Seconds between two questions. */
const EVERY_SECONDS = 15;

/** Keeps the session's machines; one component of the page does so. Where they cannot be learned there is nothing to tell apart. */
export function useNodes(): void {
  const session = useSession();
  const view = useStore(session.view);
  const now = useStore(session.now);
  const key = nodesKey(view);
  const { from, to } = shownInterval(view, now);
  const { value, error, stale } = useAsk(
    async (s, signal) => ({ key, names: await s.client.labelValues("instance", `teescope_workload_info{${key}}`, from, to, signal, MOST_NODES) }),
    `${key} ${view.fixed ? `${view.fixed.from}-${view.fixed.to}` : view.range}`,
    view.fixed ? "" : String(Math.floor(to / EVERY_SECONDS)),
    true,
  );
  useEffect(() => {
    const kept = session.nodes.get();
    if (value && value.key === key && (kept?.key !== key || kept.names.join("\n") !== value.names.join("\n"))) session.nodes.set(value);
    else if (error && !stale && kept?.key !== key) session.nodes.set({ key, names: [] });
  }, [session, value, error, stale, key]);
}
