// SPDX-License-Identifier: Apache-2.0

// A workload and its machine. Workloads of the same name on other machines are different ones. Pure.
import type { Labels } from "../../api/types";
import type { Chosen, Filter } from "../../lib/filters";
import type { CompareParams } from "../../lib/page-params";
import { onNode } from "../../lib/promql";

export interface NodeWorkload {
  workload: string;
  /** Empty where there is only one machine. */
  node: string;
}

/** Returns the filters of a workload on a node: its machine, or the chosen nodes where it has none. */
export function chosenAt({ workload, node }: NodeWorkload, nodes: readonly Filter[]): Chosen {
  return { workloads: [workload], filters: node === "" ? nodes : [{ kind: "node", text: node, regex: false }] };
}

/** Returns the workloads of series, each once, sorted. */
export function workloadsOf(series: readonly Labels[]): NodeWorkload[] {
  const all = series.map(({ workload = "", instance = "" }): NodeWorkload => ({ workload, node: instance }));
  return [...new Map(all.filter((p) => p.workload !== "").map((p) => [workloadId(p), p])).entries()]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, choice]) => choice);
}

/** Formats a workload on a node as a text. */
export function workloadId({ workload, node }: NodeWorkload): string {
  return `${workload}\n${node}`;
}

export function workloadOfId(id: string): NodeWorkload {
  const at = id.lastIndexOf("\n");
  return { workload: id.slice(0, at), node: id.slice(at + 1) };
}

/** Reports whether there are several machines. */
export function areSeveral(candidates: readonly NodeWorkload[]): boolean {
  return new Set(candidates.map((p) => p.node)).size > 1;
}

/** Returns the machines of a workload if the user must choose one of them. */
export function undecided(candidates: readonly NodeWorkload[], { workload, node }: NodeWorkload): string[] {
  const on = node === "" ? candidates.filter((p) => p.workload === workload).map((p) => p.node) : [];
  return on.length > 1 ? on : [];
}

/** Adds the machine to a workload on a node if only one machine has the workload. */
export function withNode(candidates: readonly NodeWorkload[], choice: NodeWorkload): NodeWorkload {
  const on = candidates.filter((p) => p.workload === choice.workload);
  const [only] = on;
  return choice.node === "" && on.length === 1 && only ? only : choice;
}

export function workloadName({ workload, node }: NodeWorkload, several: boolean): string {
  return onNode(workload, several ? node : undefined);
}

export const sideA = ({ a, nodeA }: CompareParams): NodeWorkload => ({ workload: a, node: nodeA });
export const sideB = ({ b, nodeB }: CompareParams): NodeWorkload => ({ workload: b, node: nodeB });
