// SPDX-License-Identifier: Apache-2.0

// A workload and its machine. Workloads of the same name on other machines are different ones. Pure.
import type { Labels } from "../../api/types";
import type { Chosen, Filter } from "../../lib/filters";
import type { CompareParams } from "../../lib/page-params";
import { onNode } from "../../lib/promql";

export interface Place {
  workload: string;
  /** Empty where there is only one machine. */
  node: string;
}

/** Returns the filters of a place: its machine, or the chosen nodes where it has none. */
export function chosenAt({ workload, node }: Place, nodes: readonly Filter[]): Chosen {
  return { workloads: [workload], filters: node === "" ? nodes : [{ kind: "node", text: node, regex: false }] };
}

/** Returns the places of series, each once, sorted. */
export function placesOf(series: readonly Labels[]): Place[] {
  const all = series.map(({ workload = "", instance = "" }): Place => ({ workload, node: instance }));
  return [...new Map(all.filter((p) => p.workload !== "").map((p) => [placeId(p), p])).entries()]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, place]) => place);
}

/** Formats a place as a text. */
export function placeId({ workload, node }: Place): string {
  return `${workload}\n${node}`;
}

export function placeOf(id: string): Place {
  const at = id.lastIndexOf("\n");
  return { workload: id.slice(0, at), node: id.slice(at + 1) };
}

/** Reports whether there are several machines. */
export function areSeveral(places: readonly Place[]): boolean {
  return new Set(places.map((p) => p.node)).size > 1;
}

/** Returns the machines of a workload if the user must choose one of them. */
export function undecided(places: readonly Place[], { workload, node }: Place): string[] {
  const on = node === "" ? places.filter((p) => p.workload === workload).map((p) => p.node) : [];
  return on.length > 1 ? on : [];
}

/** Adds the machine to a place if only one machine has the workload. */
export function withNode(places: readonly Place[], place: Place): Place {
  const on = places.filter((p) => p.workload === place.workload);
  const [only] = on;
  return place.node === "" && on.length === 1 && only ? only : place;
}

export function placeName({ workload, node }: Place, several: boolean): string {
  return onNode(workload, several ? node : undefined);
}

export const sideA = ({ a, nodeA }: CompareParams): Place => ({ workload: a, node: nodeA });
export const sideB = ({ b, nodeB }: CompareParams): Place => ({ workload: b, node: nodeB });
