// SPDX-License-Identifier: Apache-2.0

// Hooks that query the server when the view changes or the clock ticks. They cancel outdated requests and keep the
// last good answer.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { InstantSample } from "../api/types";
import { type ApiError, asApiError } from "../api/errors";
import type { Chosen } from "../lib/filters";
import { fillTemplate } from "../lib/promql";
import { agentAge, type Session, shownInterval, useSession } from "../lib/session";
import { useStore } from "../lib/store";
import type { Interval } from "../lib/time";
import { mappingKey, nodesKey } from "../lib/view-keys";
import { MINUTE } from "./panel-queries";
import { frameKey, FrameLoader, type FrameRequest, type LoadedFrame } from "./frames";
import type { Query } from "./types";

export interface Loaded<T> {
  value?: T;
  error?: ApiError | undefined;
  /** The value answers an older query; the new answer is pending. */
  stale: boolean;
}

interface Shown extends Chosen {
  interval: Interval;
  scrapeInterval: number;
  /** Seconds that the agent had counted at the end of the interval. */
  age: number | undefined;
  /** Whether several machines are shown. Names of series then contain the machine. */
  several: boolean;
  /** Whether panels may be queried: patterns are checked, and the workloads and machines of the filters are known. */
  ready: boolean;
}

/** Returns the current interval and filters. */
export function useShown(): Shown {
  const session = useSession();
  const view = useStore(session.view);
  const now = useStore(session.now);
  const server = useStore(session.server);
  const mapped = useStore(session.mapped);
  const interval = shownInterval(view, now);
  const wanted = mappingKey(view);
  const nodes = useStore(session.nodes);
  // The first queries do not wait for the list of machines, because usually there is one.
  const ready = view.unchecked === undefined && (wanted === "" || mapped?.key === wanted) && (nodes === undefined || nodes.key === nodesKey(view));
  return {
    interval,
    workloads: view.workloads,
    filters: view.filters,
    mapped: wanted === "" || mapped?.key !== wanted ? undefined : mapped.workloads,
    several: (nodes?.names.length ?? 0) > 1,
    ready,
    scrapeInterval: server.scrapeInterval,
    age: agentAge(server, interval.to),
  };
}

/**
 * Runs a query whenever `key` or `tick` changes. A new key cancels the pending query. A tick waits for it, so that a
 * slow server does not get the same query twice.
 */
export function useRequest<T>(
  request: (session: Session, signal: AbortSignal) => Promise<T>,
  key: string,
  tick: string,
  enabled: boolean,
): Loaded<T> {
  const session = useSession();
  const [loaded, setLoaded] = useState<Loaded<T> & { key?: string }>({ stale: false });
  const flight = useRef<{ key: string; control: AbortController } | undefined>(undefined);
  const latest = useRef(request);
  latest.current = request;

  useEffect(() => {
    if (!enabled || flight.current?.key === key) return;
    flight.current?.control.abort();
    const mine = { key, control: new AbortController() };
    flight.current = mine;
    latest
      .current(session, mine.control.signal)
      .then((value) => {
        if (flight.current === mine) setLoaded({ value, stale: false, key });
      })
      .catch((thrown: unknown) => {
        const error = asApiError(thrown);
        if (flight.current === mine && error.kind !== "aborted") {
          setLoaded((before) => (before.key === key ? { ...before, error } : { error, stale: false, key }));
        }
      })
      .finally(() => {
        if (flight.current === mine) flight.current = undefined;
      });
  }, [key, tick, enabled, session]);
  useEffect(() => () => flight.current?.control.abort(), []);

  const { key: answered, ...rest } = loaded;
  return answered === key ? rest : { ...rest, error: undefined, stale: true };
}

/**
 * Removes the agent's age from the identity of a query. Windows grow with a young agent, but the older answer is
 * still valid and stays until a new one arrives.
 */
export function ageless<T extends { age?: number | undefined }>(filling: T): T {
  return { ...filling, age: undefined };
}

/** Returns the series of a chart over the shown interval; newest as in FrameRequest. */
export function useFrame(queries: readonly Query[], points: number, enabled: boolean, newest: boolean): Loaded<LoadedFrame> {
  const session = useSession();
  const { interval, ready, ...filling } = useShown();
  const loader = useMemo(() => new FrameLoader(session.client), [session]);
  const request: FrameRequest = { queries, interval, points, filling, newest };
  // A moved absolute range is a new query; a moved live end is a tick.
  const fixed = useStore(session.view).fixed;
  const span = fixed ? `${fixed.from}-${fixed.to}` : String(interval.to - interval.from);
  return useRequest(
    (_, signal) => loader.load(request, signal),
    `${frameKey({ ...request, filling: ageless(filling) })}\n${span}`,
    String(interval.to),
    enabled && ready,
  );
}

export { MINUTE };

/** Returns the answers of several expressions at the end of the shown interval. */
export function useInstant(exprs: readonly string[], enabled: boolean): Loaded<InstantSample[][]> {
  const { interval, ready, ...filling } = useShown();
  const filled = exprs.map((expr) => fillTemplate(expr, { ...filling, step: MINUTE }));
  return useRequest(
    (session, signal) => Promise.all(filled.map((expr) => session.client.instant(expr, interval.to, signal))),
    exprs.map((expr) => fillTemplate(expr, { ...ageless(filling), step: MINUTE })).join("\n"),
    String(interval.to),
    enabled && ready,
  );
}

/**
 * Reports whether an element is on the screen or near it. Others are not queried. A report is printed whole, so all
 * its elements are near.
 */
export function useNear(): [{ current: HTMLElement | null }, boolean] {
  const whole = useSession().recorded === true;
  const element = useRef<HTMLElement | null>(null);
  const [near, setNear] = useState(whole);
  useEffect(() => {
    const target = element.current;
    if (!target || whole) return;
    const observer = new IntersectionObserver(
      (entries) => {
        setNear(entries.some((entry) => entry.isIntersecting));
      },
      { rootMargin: "600px 0px" },
    );
    observer.observe(target);
    return () => {
      observer.disconnect();
    };
  }, []);
  return [element, near];
}
