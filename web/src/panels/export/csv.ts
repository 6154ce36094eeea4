// SPDX-License-Identifier: Apache-2.0

// The data of a panel as comma-separated values (RFC 4180): every series, not only the drawn ones. A missing value is
// an empty field, never zero.
import type { Client } from "../../api/client";
import type { InstantSample } from "../../api/types";
import { fillTemplate, type Filling, seriesName } from "../../lib/promql";
import type { Frame } from "../../lib/series";
import type { Interval } from "../../lib/time";
import { type Unit, UNIT_LABEL } from "../../lib/units";
import { type PanelQuery, panelQueries, isTabular, MINUTE } from "../panel-queries";
import { FrameLoader } from "../frames";
import { loadRows, type RowSource, tableLoaders } from "../table-data";
import type { Row } from "../table-rows";
import type { PanelDef } from "../types";

/**
 * Quotes a field where necessary. Names of programs are not trusted: one that a spreadsheet would read as a formula
 * gets an apostrophe before it.
 */
export function field(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function number(value: number | null | undefined): string {
  return value === null || value === undefined || !Number.isFinite(value) ? "" : String(value);
}

function lines(rows: readonly (readonly string[])[]): string {
  return rows.map((row) => row.join(",") + "\r\n").join("");
}

function head(title: string, unit: Unit): string {
  return field(title === UNIT_LABEL[unit] ? title : `${title} (${UNIT_LABEL[unit]})`);
}

/** Formats a moment as RFC 3339, UTC. */
export function moment(seconds: number): string {
  return new Date(Math.round(seconds * 1000)).toISOString().replace(".000Z", "Z");
}

/** Writes one line for each time, one column for each series. */
export function frameCsv(frame: Frame, unit: Unit): string {
  return lines([
    ["time", ...frame.series.map((s) => head(s.name, unit))],
    ...frame.times.map((time, i) => [moment(time), ...frame.series.map((s) => number(s.values[i]))]),
  ]);
}

/** Writes one line for each row of a table. Box plots are unitless, because each row has the unit of its metric. */
export function tableCsv(def: RowSource, rows: readonly Row[], unitless = false): string {
  return lines([
    [
      ...[...def.keys, ...(def.info?.labels ?? [])].map((k) => field(k.title)),
      ...def.columns.map((c) => (unitless ? field(c.title) : head(c.title, c.unit))),
    ],
    ...rows.map((row) => [...row.keys.map(field), ...row.infos.map(field), ...row.cells.map((c) => number(c.value))]),
  ]);
}

/** Writes one line for each sample at the end of the interval. */
export function instantCsv(answers: readonly { query: PanelQuery; samples: readonly InstantSample[] }[], several?: boolean): string {
  const unit = answers[0]?.query.unit ?? "count";
  const rows = answers.flatMap(({ query, samples }) =>
    samples.map((s) => [moment(s.value[0]), field(seriesName(query.legend ?? "", s.metric, several)), number(s.value[1])]),
  );
  return lines([["time", "name", head("value", unit)], ...rows]);
}

/** Queries the data of a panel over an interval and formats it. */
export async function panelCsv(def: PanelDef, client: Client, interval: Interval, filling: Omit<Filling, "step">): Promise<string> {
  const { signal } = new AbortController();
  if (isTabular(def)) {
    return tableCsv(def, await loadRows(def, client, tableLoaders(def, client), interval, filling, signal), def.kind === "box");
  }
  const all = panelQueries(def);
  const points = all[0]?.points;
  if (points !== undefined) {
    const queries = all.map((a) => ({ expr: a.expr, legend: a.legend ?? "" }));
    const newest = def.kind !== "heatmap" && def.kind !== "histogram";
    const { frame } = await new FrameLoader(client).load({ queries, interval, points, filling, newest }, signal);
    return frameCsv(frame, all[0]?.unit ?? def.unit);
  }
  const answers = all.map(async (query) => {
    const expr = fillTemplate(query.expr, { ...filling, step: MINUTE });
    return { query, samples: await client.instant(expr, interval.to, signal) };
  });
  return instantCsv(await Promise.all(answers), filling.several);
}
