// SPDX-License-Identifier: Apache-2.0

// A workload and the machine that it is on: one of the same name elsewhere is
// another one. Pure.
import type { Labels } from "../../api/types";
import type { Chosen, Filter } from "../../lib/filters";
import type { CompareParams } from "../../lib/page-params";
import { onNode } from "../../lib/promql";

export interface Place {
  workload: string;
  /** Empty where it does not have to be said. */
  node: string;
}

/** What is asked of a place: of its machine, or where none has to be said, of those that the filters leave. */
export function chosenAt({ workload, node }: Place, nodes: readonly Filter[]): Chosen {
  return { workloads: [workload], filters: node === "" ? nodes : [{ kind: "node", text: node, regex: false }] };
}

/** The places of series, each once, sorted. */
export function placesOf(series: readonly Labels[]): Place[] {
  const all = series.map(({ workload = "", instance = "" }): Place => ({ workload, node: instance }));
  return [...new Map(all.filter((p) => p.workload !== "").map((p) => [placeId(p), p])).entries()]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, place]) => place);
}

/** A text for a place, for what knows texts alone. */
export function placeId({ workload, node }: Place): string {
  return `${workload}\n${node}`;
}

export function placeOf(id: string): Place {
  const at = id.lastIndexOf("\n");
  return { workload: id.slice(0, at), node: id.slice(at + 1) };
}

/** Whether machines have to be told apart. */
export function areSeveral(places: readonly Place[]): boolean {
  return new Set(places.map((p) => p.node)).size > 1;
}

/** The machines of a workload, where it has to be said which one is meant: none where that is known. */
export function undecided(places: readonly Place[], { workload, node }: Place): string[] {
  const on = node === "" ? places.filter((p) => p.workload === workload).map((p) => p.node) : [];
  return on.length > 1 ? on : [];
}

/** Where a side is, as far as it is known: the one machine that has the workload does not have to be chosen. */
export function settled(places: readonly Place[], place: Place): Place {
  const on = places.filter((p) => p.workload === place.workload);
  const [only] = on;
  return place.node === "" && on.length === 1 && only ? only : place;
}

export function placeName({ workload, node }: Place, several: boolean): string {
  return onNode(workload, several ? node : undefined);
}

export const sideA = ({ a, nodeA }: CompareParams): Place => ({ workload: a, node: nodeA });
export const sideB = ({ b, nodeB }: CompareParams): Place => ({ workload: b, node: nodeB });
