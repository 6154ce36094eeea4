// SPDX-License-Identifier: Apache-2.0

// What a panel asks of the server: one list for who draws it, exports it, or records it for a report. Pure.
import type { Unit } from "../lib/units";
import type { PanelDef } from "./types";

/** Points wanted at most: of a chart, of a heat map, of a figure's past, of a sparkline in a table. */
export const CHART_POINTS = 240;
export const HEAT_POINTS = 120;
export const FIGURE_POINTS = 60;
export const SPARK_POINTS = 40;

/** Step of the figures that speak of "the newest minute", seconds. */
export const MINUTE = 60;

export interface Ask {
  /** PromQL with the placeholders of lib/promql.ts. */
  expr: string;
  /** Names each series; absent in a table, whose rows are named by their keys. */
  legend?: string;
  unit: Unit;
  /** Points over the shown interval; absent where only its end is asked for. */
  points?: number;
}

/** All that a panel asks. A kind that is not named here does not compile. */
export function asks(def: PanelDef): Ask[] {
  const { unit } = def;
  switch (def.kind) {
    case "lines":
    case "stacked":
      return def.queries.map((q) => ({ ...q, unit, points: CHART_POINTS }));
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

/** The metrics that a panel asks for, as docs/user/metrics.md has them: a histogram without the endings of its series. */
export function families(def: PanelDef): string[] {
  const names = expressions(def).flatMap((expr) => expr.match(/[a-zA-Z_:][\w:]*(?=\{)/g) ?? []);
  return [...new Set(names.map((name) => name.replace(/_(?:bucket|sum|count)$/, "")))];
}

/** Whether a panel is of rows, each made by the labels of its keys. */
export function isTabular(def: PanelDef): def is Extract<PanelDef, { keys: unknown }> {
  return "keys" in def;
}

/** The PromQL of all that a panel asks. */
export function expressions(def: PanelDef): string[] {
  return asks(def).map((ask) => ask.expr);
}
