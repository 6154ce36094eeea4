// SPDX-License-Identifier: Apache-2.0

// Quantities of metrics and of PromQL expressions: base units at the end of a name, _total for counters
// (prometheus.io/docs/practices/naming). A unit that is not certain is undefined. Pure.
import type { Unit } from "./units";

/** What a part of a query gives. A moment is Unix time and no duration. A counter only grows. */
export type Kind =
  | { is: "unit"; unit: Unit }
  | { is: "counter"; of: "count" | "bytes" | "seconds" | "cpu" | "share" }
  /** Cumulative buckets or their rates; `of` is the unit of their bounds. */
  | { is: "buckets"; of: Unit | undefined; rate: boolean }
  | { is: "moment" }
  /** A literal number, or an expression of such numbers. */
  | { is: "number" }
  /** An info series, whose value is 1. */
  | { is: "one" };

export type Quantity = Kind | undefined;

const unit = (of: Unit): Kind => ({ is: "unit", unit: of });

const RATE_OF = { count: "per_second", bytes: "bytes_per_second", seconds: "seconds_per_second", cpu: "cores", share: "ratio" } as const;
const AMOUNT_OF = { count: "count", bytes: "bytes", seconds: "seconds", cpu: "seconds", share: "seconds" } as const;

/** Returns the unit of a gauge from its name. */
function gaugeUnit(name: string): Unit | undefined {
  if (name.endsWith("_bytes")) return "bytes";
  if (name.endsWith("_seconds")) return "seconds";
  return name.endsWith("_ratio") ? "ratio" : undefined;
}

/** CPU time, which may exceed a second per second. */
const PROCESSORS = /(?:^|_)cpu_(?:(?:usage|user|system|guest)_)?seconds$/;
/** Wall time of a state, as node_exporter and cAdvisor name it: at most a second per second. */
const ONE_AT_A_TIME = /_pressure_\w+_seconds$|_io_time_seconds$/;

export function ofMetric(name: string): Quantity {
  if (name.includes(":")) return undefined; // the name of a recorded series begins with its aggregation level
  if (name.endsWith("_info")) return { is: "one" };
  if (/(?:^|_)(?:timestamp|time|created)_seconds$|_created$/.test(name)) return { is: "moment" };
  const base = name.replace(/_(?:total|sum|count|bucket)$/, "");
  const of = gaugeUnit(base);
  if (name.endsWith("_bucket")) return { is: "buckets", of, rate: false };
  if (name.endsWith("_count")) return { is: "counter", of: "count" };
  if (name.endsWith("_total") || name.endsWith("_sum")) {
    if (of === "bytes") return { is: "counter", of };
    if (of === "seconds") return { is: "counter", of: PROCESSORS.test(base) ? "cpu" : ONE_AT_A_TIME.test(base) ? "share" : of };
    return of === undefined && name.endsWith("_total") ? { is: "counter", of: "count" } : undefined;
  }
  return of && unit(of);
}

/** Returns the quantity of a counter's value. */
function amount(q: Quantity): Quantity {
  return q?.is === "counter" ? unit(AMOUNT_OF[q.of]) : q;
}

export function unitOf(q: Quantity): Unit | undefined {
  const now = amount(q);
  return now?.is === "unit" ? now.unit : undefined;
}

const SAME = new Set([
  "abs", "avg_over_time", "ceil", "clamp", "clamp_max", "clamp_min", "floor", "label_join", "label_replace", "last_over_time", "max_over_time",
  "min_over_time", "round", "scalar", "sort", "sort_by_label", "sort_by_label_desc", "sort_desc", "vector",
]);
const COUNTS = new Set(["changes", "count_over_time", "resets"]);

export function ofFunction(name: string, args: readonly Quantity[]): Quantity {
  const [first, second] = args;
  if (SAME.has(name)) return amount(first);
  if (COUNTS.has(name)) return unit("count");
  switch (name) {
    case "rate":
    case "irate":
      if (first?.is === "buckets") return { ...first, rate: true };
      return first?.is === "counter" ? unit(RATE_OF[first.of]) : undefined;
    case "increase":
      if (first?.is === "buckets") return { ...first, rate: true };
      return first?.is === "counter" ? amount(first) : undefined;
    case "delta":
    case "idelta":
      return first?.is === "unit" ? first : undefined;
    case "deriv":
      return first?.is === "unit" && first.unit === "bytes" ? unit("bytes_per_second") : undefined;
    case "predict_linear":
      return first?.is === "unit" ? first : undefined;
    case "quantile_over_time":
      return amount(second);
    case "histogram_quantile":
      return second?.is === "buckets" && second.of ? unit(second.of) : undefined;
    case "time":
    case "timestamp":
      return { is: "moment" };
    default:
      return undefined;
  }
}

export function ofAggregation(name: string, args: readonly Quantity[]): Quantity {
  const of = args.at(-1);
  switch (name) {
    case "count":
    case "count_values":
      return unit("count");
    case "sum":
      if (of?.is === "counter" || of?.is === "buckets") return of;
      return of?.is === "unit" && of.unit !== "ratio" && of.unit !== "yes_no" ? of : undefined;
    case "avg":
    case "max":
    case "min":
    case "topk":
    case "bottomk":
    case "quantile":
    case "limitk":
      return of;
    case "stddev":
      return of?.is === "unit" ? of : undefined;
    default:
      return undefined;
  }
}

/** Units whose ratio is a share. For events it is unknown whether one side is a part of the other. */
const SHARES: readonly (Unit | undefined)[] = ["bytes", "seconds", "cores"];

/** Units of a ratio to something else. */
const EACH: Readonly<Record<string, Unit>> = {
  "seconds_per_second/per_second": "seconds", "cores/per_second": "seconds", "bytes_per_second/per_second": "bytes", "seconds/count": "seconds", "bytes/count": "bytes",
};

export function ofOperator(operator: string, left: Quantity, right: Quantity): Quantity {
  const [a, b] = [unitOf(left), unitOf(right)];
  const each = EACH[`${a ?? ""}/${b ?? ""}`];
  switch (operator) {
    case "and":
    case "unless":
      return left;
    case "or":
      return a !== undefined && a === b ? left : undefined;
    case "+":
    case "-":
      if (left?.is === "number" && right?.is === "number") return left;
      if (left?.is === "moment" && right?.is === "moment") return operator === "-" ? unit("seconds") : undefined;
      if (left?.is === "moment") return b === "seconds" ? left : undefined;
      if (operator === "-" && left?.is === "number" && b === "ratio") return right; // the remainder of a share
      return a !== undefined && a === b ? amount(left) : undefined;
    case "*":
      if (left?.is === "number" && right?.is === "number") return left;
      if (right?.is === "one" || b === "ratio") return amount(left);
      return left?.is === "one" || a === "ratio" ? amount(right) : undefined;
    case "/":
      if (left?.is === "number" && right?.is === "number") return left;
      if (a !== undefined && a === b) return SHARES.includes(a) ? unit("ratio") : undefined;
      return each && unit(each);
    default:
      // A comparison keeps the values of the side that has series.
      return /^(?:==|!=|[<>]=?)$/.test(operator) ? (left?.is === "number" ? right : left) : undefined;
  }
}
