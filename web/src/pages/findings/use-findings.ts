// SPDX-License-Identifier: Apache-2.0

// Loads the newest report, or that of the window up to the end of an absolute range that is over.
import type { Report } from "../../api/findings";
import { useSession } from "../../lib/session";
import { useStore } from "../../lib/store";
import { type Loaded, useRequest } from "../../panels/use-data";

/** Seconds between two requests for the newest report, which changes once a minute. */
const EVERY_SECONDS = 5;

export function useFindings(muted = false): Loaded<Report> {
  const session = useSession();
  const { fixed } = useStore(session.view);
  const now = useStore(session.now);
  const at = fixed && fixed.to < now ? fixed.to : undefined;
  const tick = at ?? Math.floor(now / EVERY_SECONDS);
  return useRequest((s, signal) => s.client.findings(at, signal, muted), `findings ${at ?? "newest"} ${muted}`, String(tick), true);
}
