// SPDX-License-Identifier: Apache-2.0

// The clock of the live tail and the facts about the server that it needs.
// It stands still while the tab is hidden, the tail is paused, or the range is
// an absolute one.
import { asApiError } from "../api/errors";
import type { Session } from "./session";
import { parseDuration } from "./time";

/** While the agent is younger than this, its first samples are awaited impatiently. */
const NEWBORN_SECONDS = 3;

/** How long to wait for the next tick: hardly while the agent is newborn, a second while it is young, then a scrape. */
export function tickSeconds(startedAt: number | undefined, openedAt: number, now: number, scrape: number): number {
  const age = now - (startedAt ?? openedAt);
  if (age < NEWBORN_SECONDS) return 0.3;
  return age < 4 * scrape ? Math.min(1, scrape) : scrape;
}

const FACTS_EVERY_SECONDS = 30;

/**
 * Until the agent is this old the facts are asked for at each tick, and the
 * interval of its targets is not believed: at the start it scrapes faster.
 */
const SETTLED_SECONDS = 10;

export function startLive(session: Session, document: Document, clock: () => number): () => void {
  const openedAt = clock();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let factsAt = -Infinity;
  let stopped = false;

  const schedule = (): void => {
    clearTimeout(timer);
    if (stopped) return;
    const { startedAt, scrapeInterval } = session.server.get();
    timer = setTimeout(tick, 1000 * tickSeconds(startedAt, openedAt, clock(), scrapeInterval));
  };
  const tick = (): void => {
    const now = clock();
    const { startedAt } = session.server.get();
    const settled = startedAt !== undefined && factsAt - startedAt > SETTLED_SECONDS;
    if (!document.hidden) {
      if (now - factsAt >= (settled ? FACTS_EVERY_SECONDS : 0.2)) {
        factsAt = now;
        void refreshFacts(session, now);
      }
      if (session.view.get().live) session.now.set(now);
    }
    schedule();
  };
  const unwatch = session.view.watch(() => {
    if (session.view.get().live) tick();
  });
  const onVisible = (): void => {
    if (!document.hidden) tick();
  };
  document.addEventListener("visibilitychange", onVisible);
  tick();
  return () => {
    stopped = true;
    clearTimeout(timer);
    unwatch();
    document.removeEventListener("visibilitychange", onVisible);
  };
}

async function refreshFacts(session: Session, now: number): Promise<void> {
  try {
    const [targets, starts] = await Promise.all([
      session.client.targets(),
      session.client.instant('max(process_start_time_seconds{job="teescope"})', now),
    ]);
    const intervals = targets.flatMap((t) => parseDuration(t.scrapeInterval) ?? []);
    const current = session.server.get();
    const startedAt = starts[0]?.value[1] ?? current.startedAt;
    const settled = startedAt !== undefined && now - startedAt > SETTLED_SECONDS && intervals.length > 0;
    const scrapeInterval = settled ? Math.max(1, Math.min(...intervals)) : current.scrapeInterval;
    if (scrapeInterval !== current.scrapeInterval || startedAt !== current.startedAt) {
      session.server.set({ scrapeInterval, startedAt });
    }
  } catch (error) {
    asApiError(error); // the connection store has it already, and the next tick asks again
  }
}
