// SPDX-License-Identifier: Apache-2.0

// Finds the panel that shows the family of a piece of evidence.
import { metricsIn } from "../../lib/promql";
import type { PageId } from "../../lib/url";
import { CONTAINERS } from "../../panels/dashboards/containers";
import { INFRASTRUCTURE } from "../../panels/dashboards/infrastructure";
import { SYSTEM } from "../../panels/dashboards/system";
import { TEE } from "../../panels/dashboards/tee";
import { CONFIDENTIAL, GPUS, VIRTUAL, VSOCK } from "../../panels/dashboards/virtual";
import { families } from "../../panels/families";
import type { Section } from "../../panels/types";

interface ChartAddress {
  page: PageId;
  panel: string;
  title: string;
}

const PAGES: readonly [PageId, readonly Section[]][] = [
  ["tee", [...TEE, VIRTUAL, CONFIDENTIAL, GPUS, VSOCK]],
  ["system", SYSTEM],
  ["containers", CONTAINERS],
  ["infrastructure", INFRASTRUCTURE],
];

/** The first panel of each metric and of each series of a histogram: a chart, or else a table. */
const CHARTS: ReadonlyMap<string, ChartAddress> = new Map(
  PAGES.flatMap(([page, sections]) => sections.flatMap((s) => s.panels).map((def) => ({ def, link: { page, panel: def.id, title: def.title } })))
    .sort((a, b) => Number(a.def.kind === "table") - Number(b.def.kind === "table"))
    .reverse() // a later entry of a map replaces an earlier one
    .flatMap(({ def, link }) => families(def).flatMap((name) => ["", "_bucket", "_sum", "_count"].map((suffix) => [name + suffix, link] as const))),
);

/** Returns the first panel with a metric of the query. Panels by label of the evidence come first on their pages. */
export function chartOf(query: string): ChartAddress | undefined {
  const [name] = metricsIn(query, CHARTS);
  return name === undefined ? undefined : CHARTS.get(name);
}
