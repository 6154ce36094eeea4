// SPDX-License-Identifier: Apache-2.0

// The distribution of each metric within the window of the diagnosis.
import type { BoxColumn, BoxDef } from "../types";

const value = (stat: BoxColumn["stat"], title: string): BoxColumn => ({
  title,
  unit: "count",
  expr: `max by (metric, workload, instance) (teescope:window_value{stat="${stat}",$workloads})`,
  stat,
});

export const WINDOWS: BoxDef = {
  id: "windows",
  kind: "box",
  title: "Box plots of the window",
  question: "How are the metrics of each workload distributed within the window?",
  unit: "count",
  keys: [{ label: "metric", title: "Metric" }, { label: "workload", title: "Workload" }, { label: "instance", title: "Node", several: true }],
  columns: [
    value("min", "Minimum"),
    value("whisker_low", "Lower whisker"),
    value("q1", "First quartile"),
    value("median", "Median"),
    value("q3", "Third quartile"),
    value("whisker_high", "Upper whisker"),
    value("max", "Maximum"),
    { title: "Outliers", unit: "count", expr: "max by (metric, workload, instance) (teescope:window_outliers{$workloads})", stat: "outliers" },
    { title: "Values", unit: "count", expr: "max by (metric, workload, instance) (teescope:window_samples{$workloads})", stat: "n" },
  ],
  first: "teescope_syscalls",
  help: "One value per scrape: for counters the events per second between two scrapes, for gauges the value. The box contains the middle half of the values; the line in it is the median. Whiskers end at the last value within 1.5 times its length, and ticks mark the extremes. Updated once a minute.",
  empty: { text: "No box plot is stored in this time range. The first one is stored after a minute. They are stored for at most 128 workloads of all machines together, so a server with more than 128 machines stores none. teescope analyze --windows computes them." },
};
