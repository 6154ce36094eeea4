// SPDX-License-Identifier: Apache-2.0

// The machines of the shown workloads. Where there are several, names of workloads contain the machine.
import { useEffect } from "preact/hooks";
import { shownInterval, useSession } from "../lib/session";
import { useStore } from "../lib/store";
import { nodesKey } from "../lib/view-keys";
import { useRequest } from "./use-data";

/** Limit of machines. The page only needs to know whether there are several. */
const MOST_NODES = 1000;

/** Seconds between two queries. */
const EVERY_SECONDS = 15;

/** Updates the session's machines. Only one component of the page calls it. After an error the list is empty. */
export function useNodes(): void {
  const session = useSession();
  const view = useStore(session.view);
  const now = useStore(session.now);
  const key = nodesKey(view);
  const { from, to } = shownInterval(view, now);
  const { value, error, stale } = useRequest(
    async (s, signal) => ({ key, names: await s.client.labelValues("instance", `teescope_workload_info{${key}}`, from, to, signal, MOST_NODES) }),
    `${key} ${view.fixed ? `${view.fixed.from}-${view.fixed.to}` : view.range}`,
    view.fixed ? "" : String(Math.floor(to / EVERY_SECONDS)),
    true,
  );
  useEffect(() => {
    const current = session.nodes.get();
    if (value && value.key === key && (current?.key !== key || current.names.join("\n") !== value.names.join("\n"))) session.nodes.set(value);
    else if (error && !stale && current?.key !== key) session.nodes.set({ key, names: [] });
  }, [session, value, error, stale, key]);
}
