// SPDX-License-Identifier: Apache-2.0

// The choices of the filters: names of each kind, and how many workloads each name stands for. They come from the
// series of the info families. Pure.
import type { Labels } from "../api/types";
import { type Filter, type Kind, KINDS, means, ofKind } from "./filters";

/** Limit of series in one answer. A fleet may have more. */
export const MOST_SERIES = 5000;

export interface Choice {
  name: string;
  /** Number of its workloads within the filters of other kinds. For a workload: number of machines that it ran on. */
  count: number;
  /** The same number without any filter; 0 for a chosen name that no longer exists. */
  total: number;
}

export type Choices = Readonly<Record<Kind, readonly Choice[]>>;

type Names = Record<Kind, Set<string>>;

const noNames = (): Names => Object.fromEntries(KINDS.map((kind) => [kind, new Set<string>()])) as Names;

/** A workload on a machine, with all names that a filter finds it by, and those that are listed. */
interface Entity {
  names: Names;
  listed: Names;
}

/** Returns the names that find a series of the info families, by kind, and whether they are listed. */
function namesOf(labels: Labels): { kind: Kind; name: string; listed: boolean }[] {
  const { workload = "", container = "", pod = "", name = "", runtime = "", instance = "" } = labels;
  const named = isNamed(labels);
  return [
    { kind: "workload", name: workload, listed: !named && workload !== "idle" },
    // A container outside a pod has a name of its own. Its label holds the digits of its ID.
    { kind: "container", name: container, listed: container !== "POD" && (pod !== "" || name === "") },
    { kind: "container", name, listed: container !== "POD" && pod === "" },
    { kind: "pod", name: pod, listed: true },
    { kind: "runtime", name: runtime, listed: true },
    { kind: "node", name: instance, listed: true },
  ];
}

const isNamed = (labels: Labels): boolean => labels["__name__"] === "teescope_container_info";
const identity = (l: Labels): string => `${l["instance"] ?? ""}\n${l["workload"] ?? ""}`;

/**
 * Groups series by workload and machine. Containers and pods that the container collector knows by name are not
 * listed by ID.
 */
function entitiesOf(series: readonly Labels[]): Map<string, Entity> {
  const known = new Set(series.filter(isNamed).map(identity));
  const all = new Map<string, Entity>();
  for (const labels of series) {
    const id = identity(labels);
    const entity = all.get(id) ?? { names: noNames(), listed: noNames() };
    all.set(id, entity);
    const byId = !isNamed(labels) && known.has(id);
    for (const { kind, name, listed } of namesOf(labels)) {
      if (name === "") continue;
      entity.names[kind].add(name);
      if (listed && !(byId && (kind === "container" || kind === "pod"))) entity.listed[kind].add(name);
    }
  }
  return all;
}

/** Reports whether the filters of all kinds except one include a workload. A choice must not narrow its own list. */
function within({ names }: Entity, filters: readonly Filter[], but: Kind): boolean {
  return KINDS.every((kind) => {
    const chosen = kind === but ? [] : ofKind(filters, kind);
    return chosen.length === 0 || chosen.some((f) => [...names[kind]].some((name) => means(f, name) ?? true));
  });
}

/** Returns the choices of every kind by name, with their numbers of workloads within the filters of other kinds. */
export function choicesOf(series: readonly Labels[], filters: readonly Filter[] = []): Choices {
  const entities = [...entitiesOf(series).values()];
  const choices = (kind: Kind): Choice[] => {
    const found = new Map<string, Choice>();
    for (const entity of entities) {
      const inside = within(entity, filters, kind) ? 1 : 0;
      for (const name of entity.listed[kind]) {
        const { count, total } = found.get(name) ?? { count: 0, total: 0 };
        found.set(name, { name, count: count + inside, total: total + 1 });
      }
    }
    return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  };
  return { workload: choices("workload"), container: choices("container"), pod: choices("pod"), runtime: choices("runtime"), node: choices("node") };
}

/** Returns the choices that have workloads within the filters of other kinds. */
export function inside(choices: readonly Choice[]): Choice[] {
  return choices.filter(({ count }) => count > 0);
}

/** Returns the choices that contain all words of the search. Pinned ones come first and stay even without series. */
export function matching(choices: readonly Choice[], pinned: readonly string[], search: string): Choice[] {
  const words = search.toLowerCase().split(/\s+/).filter((w) => w !== "");
  const first = pinned.map((name) => choices.find((c) => c.name === name) ?? { name, count: 0, total: 0 });
  const rest = choices.filter((c) => !pinned.includes(c.name));
  return [...first, ...rest].filter(({ name }) => words.every((word) => name.toLowerCase().includes(word)));
}
