// SPDX-License-Identifier: Apache-2.0

// Queries both sides of every compared panel. Loaders keep series between ticks, so that a live comparison only
// queries its newest points.
import { useMemo } from "preact/hooks";
import { ofKind } from "../../lib/filters";
import type { Divisor } from "../../lib/normalise";
import type { CompareParams } from "../../lib/page-params";
import { agentAge, type Session, useSession } from "../../lib/session";
import { useStore } from "../../lib/store";
import { alignToGrid, type Interval, stepFor } from "../../lib/time";
import { COMPARED } from "../../panels/compared";
import { type FrameRequest, FrameLoader } from "../../panels/frames";
import type { Query } from "../../panels/types";
import { type Loaded, useRequest, useShown } from "../../panels/use-data";
import { chosenAt, type NodeWorkload, sideA, sideB } from "./node-workloads";
import { align, comparable, type Sides } from "./shape";

/** Maximum number of points: about one for each window of a rate, so that few windows overlap. */
const POINTS = 90;
/** Seconds between two updates of live data. */
const EVERY_SECONDS = 10;

export interface Compared {
  sides: Sides[];
  /** The rates to divide by, on the times of A. */
  rates: { a: (number | null)[]; b: (number | null)[] } | undefined;
  times: number[];
  step: number;
}

/** Names of the divisors of both sides. */
export interface Divisors {
  a: Divisor;
  b: Divisor;
}

export function useCompared(params: CompareParams, divisors: Divisors | undefined): Loaded<Compared> & { interval: Interval } {
  const session = useSession();
  const { interval, scrapeInterval } = useShown();
  const server = useStore(session.server);
  const { fixed, filters } = useStore(session.view);
  const nodes = ofKind(filters, "node"); // workloads are chosen on this page; the filter chooses nodes
  const { a, b, offset } = params;
  const key = JSON.stringify([a, params.nodeA, b, params.nodeB, offset, nodes, divisors?.a.expr, divisors?.b.expr]);
  const load = useMemo(() => new Loaders(session), [session, key]);
  const step = stepFor(interval.to - interval.from, scrapeInterval, POINTS);
  const side = (choice: NodeWorkload, shift: number): Omit<FrameRequest, "queries"> => {
    const { from, to } = { from: interval.from - shift, to: interval.to - shift };
    return {
      interval: { from, to },
      points: POINTS,
      filling: { ...chosenAt(choice, nodes), scrapeInterval, age: agentAge(server, to) },
    };
  };
  const loadSides = async (_: Session, signal: AbortSignal): Promise<Compared> => {
    const [ofA, ofB] = [side(sideA(params), 0), side(sideB(params), offset)];
    const both = async (id: string, queriesA: readonly Query[], queriesB: readonly Query[]): Promise<Pick<Sides, "a" | "b">> => {
      const [frameA, frameB] = await Promise.all([
        load.of(`${id}/a`).load({ ...ofA, queries: queriesA }, signal),
        load.of(`${id}/b`).load({ ...ofB, queries: queriesB }, signal),
      ]);
      return { a: frameA.frame, b: frameB.frame };
    };
    const [rates, ...sides] = await Promise.all([
      divisors ? both("divisor", [rate(divisors.a)], [rate(divisors.b)]) : Promise.resolve(undefined),
      ...COMPARED.map(async (def) => ({ def, ...(await both(def.id, comparable(def), comparable(def))) })),
    ] as const);
    // All frames of A have the same grid. The times of the first are used.
    const times = sides[0]?.a.times ?? [];
    return {
      sides,
      times,
      step,
      rates: rates && {
        a: times.map((_time, i) => rates.a.series[0]?.values[i] ?? null),
        b: align(times, rates.b, rates.b.series[0]?.values ?? [], offset, step),
      },
    };
  };
  const grid = alignToGrid(interval, EVERY_SECONDS);
  const span = fixed ? `${fixed.from}-${fixed.to}` : String(interval.to - interval.from);
  const loaded = useRequest(loadSides, `${key} ${span} ${step}`, String(grid.to), a !== "" && b !== "");
  return { ...loaded, interval };
}

function rate(divisor: Divisor): Query {
  return { expr: divisor.expr, legend: "rate" };
}

/** One loader for each panel and side. */
class Loaders {
  private readonly cached = new Map<string, FrameLoader>();
  private readonly session: Session;

  constructor(session: Session) {
    this.session = session;
  }

  of(id: string): FrameLoader {
    const loader = this.cached.get(id) ?? new FrameLoader(this.session.client);
    this.cached.set(id, loader);
    return loader;
  }
}
