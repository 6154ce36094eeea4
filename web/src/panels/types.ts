// SPDX-License-Identifier: Apache-2.0

// What a panel is. A definition is pure data: no function, no markup, nothing
// of the browser, so that other renderers can read the same list.
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
  /** Part of what makes a row, and shown where there are several machines alone: what is of the same name elsewhere is another. */
  several?: true;
}

/** What to say when a panel has nothing to show. */
export interface Empty {
  text: string;
  /** The flag that turns the data on, if it is off by default. */
  flag?: string;
  /** The probe whose reason for not being attached explains the absence (regular expression). */
  probe?: string;
}

/** From where on a value is worth a look, or bad: a line in a chart, a mark on a gauge. */
export interface Threshold {
  /** In the unit of the panel; of a gauge with a limit the share of it, 0 to 1. */
  at: number;
  level: "warn" | "bad";
}

interface Common {
  id: string;
  title: string;
  /** The question that the panel answers, in the words of who asks it. */
  question: string;
  unit: Unit;
  /** How to read it, and what is in it and what is not. */
  help: string;
  empty: Empty;
}

export interface ChartDef extends Common {
  kind: "lines" | "stacked";
  queries: readonly Query[];
  /** Series beyond this many are added together. */
  top?: number;
  /** Keeps the order of the queries, where it means something; otherwise the greatest comes first. */
  ordered?: true;
  thresholds?: readonly Threshold[];
}

/** Buckets of a Prometheus histogram over time: how many events took how long, and when. */
export interface HeatmapDef extends Common {
  kind: "heatmap";
  /** One query, which gives cumulative rates by `le`; its legend is "{{le}}". */
  queries: readonly [Query];
}

/**
 * The same buckets added up over the shown interval. The query reads rate(...[$window]), never $rate: the events of
 * every scrape have to be in it, also where points are wider apart.
 */
export interface HistogramDef extends Common {
  kind: "histogram";
  queries: readonly [Query];
}

/** A value against its limit, now. */
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
  /** One series; its newest value is the figure, its past the sparkline. */
  query: Query;
}

export interface Column {
  title: string;
  unit: Unit;
  /** PromQL; its labels must contain the key labels of the table. */
  expr: string;
  /** Draws the past next to the value, which becomes the mean of the last minute. */
  spark?: boolean;
}

export interface BoxColumn extends Column {
  /** Which number of the box plot it is; n is how many values the box is of. */
  stat: "min" | "whisker_low" | "q1" | "median" | "q3" | "whisker_high" | "max" | "outliers" | "n";
}

/** Box plots from series that hold their numbers. One group at a time is shown, on one scale. */
export interface BoxDef extends Common {
  kind: "box";
  /** The label that groups boxes, which is a metric's name and gives the unit, the one that names a box, and its machine. */
  keys: readonly [Key, Key, Key];
  columns: readonly BoxColumn[];
  /** The group that is shown first, if it is there. */
  first: string;
}

/** Nested shares: each level is a label, and a part is as wide as its value. */
export interface FlameDef extends Common {
  kind: "flame";
  /** The labels from the whole to its parts; the machine is no level, but part of the first one's name. */
  keys: readonly Key[];
  /** What the width may stand for; the first that has series is shown. */
  columns: readonly Column[];
}

/** Who does how much to whom, now: rows, columns, and in each cell a shade and a figure. */
export interface MatrixDef extends Common {
  kind: "matrix";
  /** The label of the rows, that of the columns, and the machine that both are on. */
  keys: readonly [Key, Key, Key];
  columns: readonly [Column];
}

export interface TableDef extends Common {
  kind: "table";
  /** The labels that make a row; the first is its name. */
  keys: readonly Key[];
  /** Writes the name of a row from the labels of its info instead, as a legend does. */
  name?: string;
  /** PromQL whose labels describe the rows. */
  info?: { expr: string; labels: readonly { label: string; title: string }[] };
  columns: readonly Column[];
  /** Index into columns of the one that is sorted by at first, greatest first. */
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
  /** It is about one workload, which has to be chosen. */
  single?: true;
}
