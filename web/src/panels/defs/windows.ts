// SPDX-License-Identifier: Apache-2.0
import type { Column, TableDef } from "../types";

const value = (stat: string, title: string): Column => ({
  title,
  unit: "count",
  expr: `max by (metric, workload) (teescope:window_value{stat="${stat}",$workloads})`,
});

export const windows: TableDef = {
  id: "windows",
  kind: "table",
  title: "Box plots of the window",
  question: "How do the metrics of each workload spread within the window?",
  unit: "count",
  keys: [
    { label: "metric", title: "Metric" },
    { label: "workload", title: "Workload" },
  ],
  columns: [
    value("min", "Least"),
    value("q1", "First quartile"),
    value("median", "Median"),
    value("q3", "Third quartile"),
    value("max", "Greatest"),
    { title: "Outliers", unit: "count", expr: "max by (metric, workload) (teescope:window_outliers{$workloads})" },
    { title: "Values", unit: "count", expr: "max by (metric, workload) (teescope:window_samples{$workloads})" },
  ],
  sortBy: 2,
  help: "One value for each scrape: of counters the events per second between two scrapes, of gauges the value, in the unit of the metric. Outliers are farther from the quartiles than 1.5 times the distance between them (Tukey).",
  empty: { text: "No window has been looked at in this time range." },
};
