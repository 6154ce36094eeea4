// SPDX-License-Identifier: Apache-2.0

// What all parts of the page share: the client, the state of the view (which is the URL), the clock that drives live
// charts, and facts about the server. main.tsx makes one session and passes it down; nothing is global.
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Client } from "../api/client";
import type { ApiError } from "../api/errors";
import { createStore, type Store } from "./store";
import { findRange, type Interval, setZone, type Zone } from "./time";
import { applyChecks, formatView, parseView, type ViewState } from "./url";

interface ServerFacts {
  /** Seconds between two scrapes. */
  scrapeInterval: number;
  /** When the agent began to count, Unix seconds; undefined until it is known. */
  startedAt?: number | undefined;
}

export interface Connection {
  /** Unix seconds of the last good answer. */
  lastAnswer?: number | undefined;
  /** Set while the server does not answer. */
  failure?: ApiError | undefined;
}

export interface Session {
  client: Client;
  /** Set in a report: its answers are recorded, and it has no server and no other page. */
  recorded?: true;
  view: Store<ViewState>;
  /**
   * The workloads of the filters of containers, pods and runtimes; the key is of the filters and the time that were
   * queried.
   */
  mapped: Store<{ key: string; workloads: readonly string[] } | undefined>;
  /** The machines of workloads within the filter of nodes; the key is of that filter. */
  nodes: Store<{ key: string; names: readonly string[] } | undefined>;
  /** The server's answers about patterns: the reason why it refuses one, or "" for a valid one. */
  checked: Map<string, string>;
  /** The end of live charts, Unix seconds. */
  now: Store<number>;
  server: Store<ServerFacts>;
  connection: Store<Connection>;
  /** Reports whether the server has another version of the page. */
  updated?: () => Promise<boolean>;
}

/** Makes a session. The given zone is used where the URL has none. */
export function createSession(client: Client, connection: Store<Connection>, now: number, search: string, zone: Zone): Session {
  const first = applyChecks(parseView(search), new Map());
  const view = createStore(new URLSearchParams(search).has("tz") ? first : { ...first, zone });
  setZone(view.get().zone);
  view.watch((next) => {
    setZone(next.zone); // before anything is drawn
  });
  return {
    client,
    connection,
    view,
    mapped: createStore<ReturnType<Session["mapped"]["get"]>>(undefined),
    nodes: createStore<ReturnType<Session["nodes"]["get"]>>(undefined),
    checked: new Map<string, string>(),
    now: createStore(now),
    server: createStore<ServerFacts>({ scrapeInterval: 5 }),
  };
}

const SessionContext = createContext<Session | undefined>(undefined);
export const SessionProvider = SessionContext.Provider;

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error("a component was drawn outside of the session");
  return session;
}

/** Returns the interval that the view shows at a moment. It never ends in the future. */
export function shownInterval(view: Pick<ViewState, "fixed" | "range">, now: number): Interval {
  if (view.fixed) return view.fixed.from < now && now < view.fixed.to ? { from: view.fixed.from, to: now } : view.fixed;
  const seconds = findRange(view.range)?.seconds ?? 300;
  return { from: now - seconds, to: now };
}

/** Assumed maximum difference between the clocks of browser and agent, seconds. */
const CLOCKS_APART = 60;

/**
 * Returns for how many seconds the agent had counted at the end of an interval. It is undefined where the interval
 * ends before this agent started, because an earlier agent counted then.
 */
export function agentAge({ startedAt }: ServerFacts, end: number): number | undefined {
  if (startedAt === undefined || end < startedAt - CLOCKS_APART) return undefined;
  return Math.max(0, end - startedAt);
}

/** Synchronises the view with the address bar, in both directions. */
export function bindHistory({ view, checked }: Pick<Session, "view" | "checked">, window: Window): void {
  let applying = false;
  let shown = formatView(view.get());
  if (view.get().zone !== parseView(window.location.search).zone) window.history.replaceState(null, "", formatView(view.get()));
  view.watch((next) => {
    const url = formatView(next);
    const same = url === shown; // also true for a hand-written address with another order of parameters
    shown = url;
    if (applying || same || url === window.location.pathname + window.location.search) return;
    window.history.pushState(null, "", url);
  });
  window.addEventListener("popstate", () => {
    applying = true;
    view.set(applyChecks(parseView(window.location.search), checked));
    applying = false;
  });
}
