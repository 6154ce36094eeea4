// SPDX-License-Identifier: Apache-2.0

// The clock of the live view and what it needs to know of the server. The clock stops while the tab is hidden, the
// view is paused, or the range is absolute.
import { asApiError } from "../api/errors";
import type { Session } from "./session";
import { parseDuration } from "./time";

/** While the agent is younger than this, the page polls for its first samples. */
const NEWBORN_SECONDS = 3;

/** Returns the time to the next tick: very short for a new agent, a second for a young one, then a scrape interval. */
export function tickSeconds(startedAt: number | undefined, openedAt: number, now: number, scrape: number): number {
  const age = now - (startedAt ?? openedAt);
  if (age < NEWBORN_SECONDS) return 0.3;
  return age < 4 * scrape ? Math.min(1, scrape) : scrape;
}

const FACTS_EVERY_SECONDS = 30;

/**
 * Below this age of the agent its facts are queried at each tick. The interval of its targets is not used yet,
 * because it scrapes faster at the start.
 */
const YOUNG_SECONDS = 10;

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
    const isYoung = startedAt === undefined || factsAt - startedAt <= YOUNG_SECONDS;
    if (!document.hidden) {
      if (now - factsAt >= (isYoung ? 0.2 : FACTS_EVERY_SECONDS)) {
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
    const isKnown = startedAt !== undefined && now - startedAt > YOUNG_SECONDS && intervals.length > 0;
    const scrapeInterval = isKnown ? Math.max(1, Math.min(...intervals)) : current.scrapeInterval;
    if (scrapeInterval !== current.scrapeInterval || startedAt !== current.startedAt) {
      session.server.set({ scrapeInterval, startedAt });
    }
  } catch (error) {
    asApiError(error); // the connection store has the error, and the next tick queries again
  }
}
