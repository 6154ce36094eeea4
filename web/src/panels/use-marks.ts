// SPDX-License-Identifier: Apache-2.0

// State that all panels of a session share: the marks, which are queried once, whether they are shown, and the time
// under the cursor.
import { useEffect } from "preact/hooks";
import type { Client } from "../api/client";
import type { RangeSeries } from "../api/types";
import { fillTemplate, type Filling } from "../lib/promql";
import type { Chosen } from "../lib/filters";
import { type Session, useSession } from "../lib/session";
import { createStore, type Store, useStore } from "../lib/store";
import { alignToGrid, type Interval, stepFor } from "../lib/time";
import { type Mark, MARK_POINTS, MARK_QUERIES, type MarkAnswers, pairMarks, toMarks } from "./marks";
import { useRequest, useShown } from "./use-data";

/** The time under a cursor. uPlot charts synchronise each other by themselves. */
interface Hover {
  at: number | undefined;
  from: "plot" | "heat";
}

interface Shared {
  hover: Store<Hover>;
  marksShown: Store<boolean>;
  marks: Store<readonly Mark[]>;
  /** The last query. */
  last: { key: string; to: number; control: AbortController; failedAt?: number } | undefined;
}

const KEY = "teescope-marks";
/** Seconds between two queries of marks on a live chart. They change rarely. */
const EVERY = 15;
/** Minimum milliseconds before a retry. Otherwise every redrawn chart would retry at once. */
const AGAIN_MS = 5000;

const sessions = new WeakMap<Session, Shared>();

export function shared(session: Session): Shared {
  const known = sessions.get(session);
  if (known) return known;
  const made: Shared = {
    hover: createStore<Hover>({ at: undefined, from: "plot" }),
    marksShown: createStore(remembered()),
    marks: createStore<readonly Mark[]>([]),
    last: undefined,
  };
  sessions.set(session, made);
  return made;
}

function remembered(): boolean {
  try {
    return localStorage.getItem(KEY) !== "hidden";
  } catch {
    return true; // storage may be forbidden
  }
}

export function showMarks(session: Session, shown: boolean): void {
  shared(session).marksShown.set(shown);
  try {
    localStorage.setItem(KEY, shown ? "shown" : "hidden");
  } catch {
    // without storage it lasts until the page is closed
  }
}

/** Returns the marks of the shown interval, none while they are hidden, and their number. */
export function useMarks(): { marks: readonly Mark[]; shown: boolean } {
  const session = useSession();
  const { interval, ...filling } = useShown();
  const { fixed } = useStore(session.view);
  const shown = useStore(shared(session).marksShown);
  const marks = useStore(shared(session).marks);
  useEffect(() => {
    const span = fixed ? `${fixed.from}-${fixed.to}` : String(interval.to - interval.from);
    if (shown) want(session, `${span} ${JSON.stringify({ ...filling, age: undefined })}`, interval, filling);
  });
  return { marks: shown ? marks : NONE, shown };
}

const NONE: readonly Mark[] = [];

/** Queries the marks unless another component has just done so. Values do not wait for marks. */
function want(session: Session, key: string, interval: Interval, filling: Omit<Filling, "step">): void {
  const all = shared(session);
  if (all.last?.key === key) {
    const { to, failedAt } = all.last;
    if (failedAt === undefined ? Math.abs(interval.to - to) < EVERY : Date.now() - failedAt < AGAIN_MS) return;
  }
  all.last?.control.abort();
  if (all.last?.key !== key) all.marks.set(NONE);
  const mine = { key, to: interval.to, control: new AbortController() };
  all.last = mine;
  marksOf(session.client, interval, filling, mine.control.signal)
    .then((marks) => {
      if (all.last === mine) all.marks.set(marks);
    })
    .catch(() => {
      if (all.last === mine) all.last = { ...mine, failedAt: Date.now() }; // the connection store has the error
    });
}

/** Queries the marks of an interval. */
async function marksOf(client: Client, interval: Interval, filling: Omit<Filling, "step">, signal: AbortSignal): Promise<Mark[]> {
  const step = stepFor(interval.to - interval.from, filling.scrapeInterval, MARK_POINTS);
  const { from, to } = alignToGrid(interval, step);
  const load = (of: keyof MarkAnswers): Promise<RangeSeries[]> =>
    client.range(fillTemplate(MARK_QUERIES[of], { ...filling, step }), from, to, step, signal);
  const [findings, alerts, deployments, restarts, containers, agents] = await Promise.all([
    load("findings"),
    load("alerts"),
    load("deployments"),
    load("restarts"),
    load("containers"),
    load("agents"),
  ]);
  return toMarks({ findings, alerts, deployments, restarts, containers, agents }, filling, interval, step);
}

/** Returns the marks of two sides on the time of A, where B was `offset` seconds earlier. */
export function usePairMarks(a: Chosen, b: Chosen, offset: number): { marks: readonly Mark[]; shown: boolean } {
  const session = useSession();
  const { interval, scrapeInterval } = useShown();
  const { fixed } = useStore(session.view);
  const shown = useStore(shared(session).marksShown);
  const earlier = { from: interval.from - offset, to: interval.to - offset };
  const span = fixed ? `${fixed.from}-${fixed.to}` : String(interval.to - interval.from);
  const loaded = useRequest(
    async ({ client }, signal) => {
      const sides = await Promise.all([
        marksOf(client, interval, { ...a, scrapeInterval }, signal),
        marksOf(client, earlier, { ...b, scrapeInterval }, signal),
      ]);
      return pairMarks(...sides, offset);
    },
    `${JSON.stringify([a, b])} ${offset} ${span}`,
    String(Math.floor(interval.to / EVERY)),
    shown,
  );
  return { marks: shown && !loaded.stale ? (loaded.value ?? NONE) : NONE, shown };
}
