// SPDX-License-Identifier: Apache-2.0

// The part of the Prometheus HTTP API that the page reads, validated. Source:
// prometheus.io/docs/prometheus/latest/querying/api/
import { malformed } from "./errors";
import { type Decoder, list, number, object, pair, record, sampleValue, shape, text, withDefault } from "./validate";

export type Labels = Readonly<Record<string, string>>;
/** Unix seconds and value. */
type Point = [number, number];

export interface InstantSample {
  metric: Labels;
  value: Point;
}

export interface RangeSeries {
  metric: Labels;
  values: Point[];
}

export interface Target {
  labels: Labels;
  scrapeUrl: string;
  lastError: string;
  /** RFC 3339. */
  lastScrape: string;
  lastScrapeDuration: number;
  health: string;
  /** A Prometheus duration, such as "5s". */
  scrapeInterval: string;
}

const point: Decoder<Point> = pair(number, sampleValue);

function result<T>(type: string, item: Decoder<T>): Decoder<T[]> {
  return (value, path) => {
    const data = object(value, path);
    const found = text(data["resultType"], `${path}.resultType`);
    if (found !== type) throw malformed(`${path}.resultType`, `wanted ${type}, found ${found}`);
    return list(item)(data["result"], `${path}.result`);
  };
}

export const vector = result<InstantSample>("vector", shape({ metric: record(text), value: point }));

/** The answer to any instant query of a user. A scalar is one sample without labels. */
export const vectorOrScalar: Decoder<InstantSample[]> = (value, path) => {
  const data = object(value, path);
  return data["resultType"] === "scalar" ? [{ metric: {}, value: point(data["result"], `${path}.result`) }] : vector(value, path);
};

export const matrix = result<RangeSeries>("matrix", shape({ metric: record(text), values: list(point) }));
export const names: Decoder<string[]> = list(text);
export const labels: Decoder<Labels[]> = list(record(text));

export interface MetricMetadata {
  /** "counter", "gauge", "histogram", ... */
  type: string;
  help: string;
}

export const metadata: Decoder<Record<string, MetricMetadata[]>> = record(
  list(shape<MetricMetadata>({ type: text, help: withDefault(text, "") })),
);

export const targets: Decoder<Target[]> = (value, path) =>
  list(
    shape<Target>({
      labels: record(text),
      scrapeUrl: text,
      lastError: withDefault(text, ""),
      lastScrape: withDefault(text, ""),
      lastScrapeDuration: withDefault(number, 0),
      health: text,
      scrapeInterval: withDefault(text, ""),
    }),
  )(object(value, path)["activeTargets"], `${path}.activeTargets`);
