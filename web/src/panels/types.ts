// SPDX-License-Identifier: Apache-2.0

// The definition of a panel. It is pure data without functions, markup or browser types, so that other renderers can
// read it.
import type { Unit } from "../lib/units";

export interface Query {
  /** PromQL with the placeholders of lib/promql.ts. */
  expr: string;
  /** Name of each series: "{{label}}" is replaced by the label's value. */
  legend: string;
}

/** A label that makes a row, a box or a level. */
interface Key {
  label: string;
  title: string;
  /** Part of the row's identity, but shown only where there are several machines. */
  several?: true;
}

/** The text of a panel without data. */
export interface Empty {
  text: string;
  /** The flag that turns the data on, if it is off by default. */
  flag?: string;
  /** A regular expression of probes whose state explains the missing data. */
  probe?: string;
  /** What an agent that allows changes can switch on for a while to get the data. */
  switch?: "timing" | "watch";
}

/** A value that is a warning or bad: a line in a chart, a mark on a gauge. */
export interface Threshold {
  /** In the unit of the panel; on a gauge with a limit a share of it, 0 to 1. */
  at: number;
  level: "warn" | "bad";
}

interface Common {
  id: string;
  title: string;
  /** The question that the panel answers. */
  question: string;
  unit: Unit;
  /** How to read it, and what it includes and excludes. */
  help: string;
  empty: Empty;
}

export interface ChartDef extends Common {
  kind: "lines" | "stacked";
  queries: readonly Query[];
  /** Half of the 95 % interval of each series of the first query, with the same labels. Absent where all was counted. */
  error?: string;
  /**
   * Half of the 95 % interval of the sum of all series, where the error of each is not known. One series, absent where all was counted.
   */
  errorOfSum?: string;
  /** Series beyond this many are folded. */
  top?: number;
  /** Keeps the order of the queries. Otherwise the greatest comes first. */
  ordered?: true;
  thresholds?: readonly Threshold[];
}

/** Buckets of a Prometheus histogram over time. */
export interface HeatmapDef extends Common {
  kind: "heatmap";
  /** One query, which gives cumulative rates by `le`; its legend is "{{le}}". */
  queries: readonly [Query];
}

/**
 * The same buckets added up over the shown interval. The query must use rate(...[$window]) instead of $rate: it must
 * include the events of every scrape, also where points are further apart.
 */
export interface HistogramDef extends Common {
  kind: "histogram";
  queries: readonly [Query];
}

/** The current value and its limit. */
export interface GaugeDef extends Common {
  kind: "gauge";
  /** The value and the limit, one series each. */
  queries: readonly [Query, Query];
  thresholds: readonly Threshold[];
}

export interface BarsDef extends Common {
  kind: "bars";
  queries: readonly Query[];
  top?: number;
}

export interface FigureDef extends Common {
  kind: "figure";
  /** One series. Its newest value is the figure, its history the sparkline. */
  query: Query;
}

export interface Column {
  title: string;
  unit: Unit;
  /** PromQL; its labels include the key labels of the table. */
  expr: string;
  /** Draws the history next to the value, which becomes the mean of the last minute. */
  spark?: boolean;
}

export interface BoxColumn extends Column {
  /** The statistic of the box plot; n is the number of values. */
  stat: "min" | "whisker_low" | "q1" | "median" | "q3" | "whisker_high" | "max" | "outliers" | "n";
}

/** Box plots from series of their statistics. One group at a time is shown, on one scale. */
export interface BoxDef extends Common {
  kind: "box";
  /** The label of groups, which is a metric's name and gives the unit; the label that names a box; the machine. */
  keys: readonly [Key, Key, Key];
  columns: readonly BoxColumn[];
  /** The group that is shown first, if it exists. */
  first: string;
}

/** Nested shares: each level is a label, and the width of a part is its value. */
export interface FlameDef extends Common {
  kind: "flame";
  /** The labels from the root to the leaves. The machine is not a level, but part of the first one's name. */
  keys: readonly Key[];
  /** What the width can stand for. The first one with series is shown. */
  columns: readonly Column[];
}

/** Current values by source and target: rows, columns, and in each cell a shade and a number. */
export interface MatrixDef extends Common {
  kind: "matrix";
  /** The label of the rows, the label of the columns, and the machine of both. */
  keys: readonly [Key, Key, Key];
  columns: readonly [Column];
}

export interface TableDef extends Common {
  kind: "table";
  /** The labels that make a row; the first is its name. */
  keys: readonly Key[];
  /** A legend template for the row's name, filled from the info labels. */
  name?: string;
  /** PromQL whose labels describe the rows. */
  info?: { expr: string; labels: readonly { label: string; title: string }[] };
  columns: readonly Column[];
  /** Index of the column that is sorted by default, descending. */
  sortBy?: number;
  /** A click on a row toggles it in the workload filter. */
  filters?: boolean;
}

export type PanelDef = ChartDef | BarsDef | FigureDef | TableDef | HeatmapDef | HistogramDef | GaugeDef | BoxDef | FlameDef | MatrixDef;

export interface Section {
  id: string;
  title: string;
  panels: readonly PanelDef[];
}

export interface Dashboard {
  id: string;
  title: string;
  /** The question that it answers. */
  question: string;
  sections: readonly Section[];
  /** It shows a single workload, which must be chosen. */
  single?: true;
}
