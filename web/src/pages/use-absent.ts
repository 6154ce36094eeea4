// SPDX-License-Identifier: Apache-2.0

// Which panels cannot have data: the server has no series of any of their metrics.
import { fillTemplate } from "../lib/promql";
import { quote } from "../lib/filters";
import { useSession } from "../lib/session";
import { useStore } from "../lib/store";
import { families } from "../panels/families";
import type { PanelDef } from "../panels/types";
import { MINUTE, useRequest, useShown } from "../panels/use-data";

/** Seconds between two looks at the names. */
const EVERY_SECONDS = 5;

/** Returns selectors of the series of metrics: those of the chosen workloads, and those of no workload. */
export function selectorsOf(metrics: readonly string[]): string[] {
  const names = quote(metrics.flatMap((name) => (name.endsWith("_seconds") ? [name, `${name}_count`] : [name])).join("|"));
  return [`{__name__=~${names},$workloads}`, `{__name__=~${names},workload="",$nodes}`];
}

/** Returns the panels without any series among the names that exist. A histogram is named by its parts. */
export function absentAmong(defs: readonly PanelDef[], names: readonly string[]): Set<string> {
  const there = new Set(names.flatMap((name) => [name, name.replace(/_count$/, "")]));
  return new Set(defs.filter((def) => families(def).length > 0 && !families(def).some((name) => there.has(name))).map(({ id }) => id));
}

const NONE: ReadonlySet<string> = new Set();

/** Returns the panels that cannot have data on the shown machines, for the chosen workloads and time. None until that is known. */
export function useAbsent(defs: readonly PanelDef[]): ReadonlySet<string> {
  const { view, recorded } = useSession();
  const { range, fixed } = useStore(view);
  const { interval, ready, ...filling } = useShown();
  const metrics = [...new Set(defs.flatMap((def) => families(def)))];
  const selectors = selectorsOf(metrics).map((selector) => fillTemplate(selector, { ...filling, age: undefined, step: MINUTE }));
  const loaded = useRequest(
    (s, signal) => s.client.labelValues("__name__", selectors, interval.from, interval.to, signal),
    `${selectors.join("\n")} ${range} ${fixed?.from ?? ""} ${fixed?.to ?? ""}`,
    String(Math.floor(interval.to / EVERY_SECONDS)),
    recorded !== true && ready && metrics.length > 0,
  );
  return loaded.value && !loaded.stale && !loaded.error ? absentAmong(defs, loaded.value) : NONE;
}
