// SPDX-License-Identifier: Apache-2.0

// The queries of a panel: one list for drawing, export and reports. Pure.
import { type Errors, lastValue } from "../lib/series";
import { formatValue, type Unit } from "../lib/units";
import type { ChartDef, PanelDef, Query } from "./types";

/** Maximum number of points of a chart, a heat map, a figure's history, a sparkline in a table. */
export const CHART_POINTS = 240;
export const HEAT_POINTS = 120;
export const FIGURE_POINTS = 60;
export const SPARK_POINTS = 40;

/** Step of values that are means of the last minute, seconds. */
export const MINUTE = 60;

export interface PanelQuery {
  /** PromQL with the placeholders of lib/promql.ts. */
  expr: string;
  /** Names each series; absent in a table, whose rows are named by their keys. */
  legend?: string;
  unit: Unit;
  /** Points over the shown interval; absent where only its end is queried. */
  points?: number;
}

/** Begins the names of series that are errors of others. */
export const ERROR_PREFIX = "± ";

/** Names the error of the sum of all series, after that prefix. */
const SUM = "sum of all";

/** Returns the queries of a chart, and those of its errors. */
export function chartQueries(def: ChartDef): readonly Query[] {
  const { error, errorOfSum } = def;
  return [
    ...def.queries,
    ...(error === undefined ? [] : [{ expr: error, legend: ERROR_PREFIX + (def.queries[0]?.legend ?? "") }]),
    ...(errorOfSum === undefined ? [] : [{ expr: errorOfSum, legend: ERROR_PREFIX + SUM }]),
  ];
}

/** Says that the values of a chart are estimates whose errors are not drawn, or nothing where all was counted. */
export function estimateNote(errors: Errors | undefined, unit: Unit): string | undefined {
  const half = lastValue(errors?.get(SUM) ?? []);
  if (half === null) return undefined;
  return `estimates: the 95 % interval of their sum is at most ± ${formatValue(half, unit)}, that of each is not known`;
}

/** Returns all queries of a panel. A kind that is missing here does not compile. */
export function panelQueries(def: PanelDef): PanelQuery[] {
  const { unit } = def;
  switch (def.kind) {
    case "lines":
    case "stacked":
      return chartQueries(def).map((q) => ({ ...q, unit, points: CHART_POINTS }));
    case "heatmap":
    case "histogram":
      return def.queries.map((q) => ({ ...q, unit: "per_second", points: HEAT_POINTS }));
    case "bars":
    case "gauge":
      return def.queries.map((q) => ({ ...q, unit }));
    case "figure":
      return [{ ...def.query, unit, points: FIGURE_POINTS }];
    case "box":
    case "flame":
    case "matrix":
      return def.columns.map((c) => ({ expr: c.expr, unit: c.unit }));
    case "table":
      return [
        ...(def.info ? [{ expr: def.info.expr, unit }] : []),
        ...def.columns.map((c) => ({ expr: c.expr, unit: c.unit, ...(c.spark === true ? { points: SPARK_POINTS } : {}) })),
      ];
  }
}

/** Reports whether a panel consists of rows, each identified by its key labels. */
export function isTabular(def: PanelDef): def is Extract<PanelDef, { keys: unknown }> {
  return "keys" in def;
}

/** Returns the PromQL of all queries of a panel. */
export function expressions(def: PanelDef): string[] {
  return panelQueries(def).map((query) => query.expr);
}
