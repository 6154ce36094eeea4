// SPDX-License-Identifier: Apache-2.0

// Queries all columns of a table and joins the answers into rows. It is independent of components.
import type { Client } from "../api/client";
import type { InstantSample } from "../api/types";
import { fillTemplate, type Filling } from "../lib/promql";
import type { Interval } from "../lib/time";
import { MINUTE, SPARK_POINTS } from "./panel-queries";
import { FrameLoader, newestMean } from "./frames";
import { buildRows, type Cell, type ColumnData, type Row, rowKey, rowLegend } from "./table-rows";
import type { Column, TableDef } from "./types";

/** Definitions with rows: tables, and kinds that draw the data of a table. */
export type RowSource = Pick<TableDef, "keys" | "info" | "name" | "columns">;

/** Returns one loader for each column. It keeps the column's history. */
export function tableLoaders(def: RowSource, client: Client): FrameLoader[] {
  return def.columns.map(() => new FrameLoader(client));
}

export async function loadRows(
  def: RowSource,
  client: Client,
  loaders: readonly FrameLoader[],
  interval: Interval,
  filling: Omit<Filling, "step">,
  signal: AbortSignal,
): Promise<Row[]> {
  const keys = def.keys.map((k) => k.label);
  const instant = (expr: string): Promise<InstantSample[]> =>
    client.instant(fillTemplate(expr, { ...filling, step: MINUTE }), interval.to, signal);
  const column = async (c: Column, i: number): Promise<ColumnData> => {
    const loader = loaders[i];
    if (c.spark !== true || !loader) {
      return new Map((await instant(c.expr)).map((s) => [rowKey(s.metric, keys), { value: s.value[1] }]));
    }
    // Series are joined to rows by their key labels, including the machine. These names are not shown.
    const queries = [{ expr: c.expr, legend: rowLegend(keys) }];
    const { frame } = await loader.load({ queries, interval, points: SPARK_POINTS, filling: { ...filling, several: false }, newest: true }, signal);
    return new Map(frame.series.map((s): [string, Cell] => [s.name, { value: newestMean(frame, s.values), past: s.values }]));
  };
  const [info, ...columns] = await Promise.all([
    def.info ? instant(def.info.expr) : Promise.resolve([]),
    ...def.columns.map(column),
  ] as const);
  return buildRows(keys, def.info?.labels.map((l) => l.label) ?? [], info, columns, def.name);
}
