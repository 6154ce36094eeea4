// SPDX-License-Identifier: Apache-2.0

// What there is to choose from: names of each kind, and how many workloads
// each of them means, from the series of the info families. Pure.
import type { Labels } from "../api/types";
import { type Kind, KINDS } from "./filters";

/** Asked for at most; a fleet may have more. */
export const MOST_SERIES = 5000;

export interface Choice {
  name: string;
  /** Workloads that it means; of a workload, the machines that it ran on. */
  count: number;
}

export type Choices = Readonly<Record<Kind, readonly Choice[]>>;

/** The names by which series of the info families are found, by kind. */
function namesOf(labels: Labels): Record<Kind, string> {
  const { workload = "", container = "", pod = "", name = "", runtime = "", instance = "" } = labels;
  const named = labels["__name__"] === "teescope_container_info";
  return {
    workload: named || workload === "idle" ? "" : workload,
    // A container outside of a pod has a name of its own, and the label has the digits of its ID.
    container: container === "POD" ? "" : pod === "" && name !== "" ? name : container,
    pod,
    runtime,
    node: instance,
  };
}

/**
 * The choices of every kind, by name. Containers and pods that the container
 * collector knows by name are not listed by their IDs too.
 */
export function choicesOf(series: readonly Labels[]): Choices {
  const identity = (l: Labels): string => `${l["instance"] ?? ""}\n${l["workload"] ?? ""}`;
  const named = new Set(series.filter((l) => l["__name__"] === "teescope_container_info").map(identity));
  const found = Object.fromEntries(KINDS.map((kind) => [kind, new Map<string, Set<string>>()])) as Record<Kind, Map<string, Set<string>>>;
  for (const labels of series) {
    const names = namesOf(labels);
    const known = labels["__name__"] !== "teescope_container_info" && named.has(identity(labels));
    for (const kind of KINDS) {
      if (names[kind] === "" || (known && (kind === "container" || kind === "pod"))) continue;
      const of = found[kind].get(names[kind]) ?? new Set();
      found[kind].set(names[kind], of.add(kind === "workload" ? (labels["instance"] ?? "") : identity(labels)));
    }
  }
  const sorted = (kind: Kind): Choice[] =>
    [...found[kind]].map(([name, of]) => ({ name, count: of.size })).sort((a, b) => (a.name < b.name ? -1 : 1));
  return { workload: sorted("workload"), container: sorted("container"), pod: sorted("pod"), runtime: sorted("runtime"), node: sorted("node") };
}

/** The choices that contain all words of the search; pinned ones come first and stay even if gone. */
export function matching(choices: readonly Choice[], pinned: readonly string[], search: string): Choice[] {
  const words = search.toLowerCase().split(/\s+/).filter((w) => w !== "");
  const first = pinned.map((name) => choices.find((c) => c.name === name) ?? { name, count: 0 });
  const rest = choices.filter((c) => !pinned.includes(c.name));
  return [...first, ...rest].filter(({ name }) => words.every((word) => name.toLowerCase().includes(word)));
}
