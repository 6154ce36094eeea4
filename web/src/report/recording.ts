// SPDX-License-Identifier: Apache-2.0

// The answers in a report, instead of a server. They reach the page's client like fetched ones. internal/server/report
// writes them.
import { malformed } from "../api/errors";
import { type Decoder, list, number, record, shape, text, withDefault } from "../api/validate";
import { fillTemplate, type Filling } from "../lib/promql";
import { alignToGrid, type Interval, stepFor } from "../lib/time";
import { panelQueries, MINUTE } from "../panels/panel-queries";
import type { PanelDef } from "../panels/types";

interface Answer {
  expr: string;
  points: number;
  /** Unix seconds of the first value, and seconds between two. */
  from: number;
  step: number;
  /**
   * Labels, values from `from` on, and the value at the end of the report where the grid's last point lies beyond it.
   */
  series: readonly { m: Readonly<Record<string, string>>; v: readonly (number | null)[]; e: readonly (number | null)[] }[];
  error: string;
}

export interface Recording {
  server: string;
  version: string;
  /** Unix seconds. */
  made: number;
  from: number;
  to: number;
  workloads: string[];
  scrapeInterval: number;
  startedAt: number;
  findings: unknown;
  answers: Answer[];
  leftOut: string[];
}

/** A decoder without a path for each value, because there are hundreds of thousands. */
const values: Decoder<(number | null)[]> = (value, path) => {
  const all: unknown[] = Array.isArray(value) ? value : [];
  if (!Array.isArray(value) || !all.every((v): v is number | null => v === null || typeof v === "number")) throw malformed(path, "wanted numbers");
  return all;
};

const answer: Decoder<Answer> = shape<Answer>({
  expr: text,
  points: number,
  from: number,
  step: number,
  series: withDefault(list(shape({ m: withDefault(record(text), {}), v: values, e: withDefault(values, []) })), []),
  error: withDefault(text, ""),
});

const recording: Decoder<Recording> = shape<Recording>({
  server: text,
  version: text,
  made: number,
  from: number,
  to: number,
  workloads: list(text),
  scrapeInterval: number,
  startedAt: withDefault(number, 0),
  findings: (value) => value,
  answers: list(answer),
  leftOut: withDefault(list(text), []),
});

/** Unpacks the content of the file: compressed JSON as text. */
export async function unpack(base64: string): Promise<Recording> {
  const packed = Uint8Array.from(atob(base64.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return recording(JSON.parse(await new Response(stream).text()), "recording");
}

/** Returns the values of placeholders, which are the same in the whole report. */
function fillingOf(r: Recording): Omit<Filling, "step"> {
  const age = r.startedAt > 0 ? Math.max(0, r.to - r.startedAt) : undefined;
  return { workloads: r.workloads, scrapeInterval: r.scrapeInterval, age };
}

/** Reports whether all queries of a panel have an empty answer. */
export function silence(r: Recording): (def: PanelDef) => boolean {
  const withData = new Set(r.answers.filter((a) => a.series.length > 0 || a.error !== "").map((a) => `${a.points} ${a.expr}`));
  const queried = new Set(r.answers.map((a) => `${a.points} ${a.expr}`));
  return (def) => panelQueries(def).every(({ expr, points = 0 }) => queried.has(`${points} ${expr}`) && !withData.has(`${points} ${expr}`));
}

/** Returns the machines of a report's workloads. */
export function nodesOf(r: Recording): string[] {
  const labels = r.answers.flatMap((a) => a.series.map(({ m }) => m)).filter((m) => m["workload"] !== undefined);
  return [...new Set(labels.flatMap((m) => m["instance"] ?? []))].sort();
}

/** Answers the requests of the page's client. It fills queries as the page does, so that each one finds its answer. */
export function recordedFetch(r: Recording): typeof fetch {
  const filling = fillingOf(r);
  const interval: Interval = { from: r.from, to: r.to };
  const instants = new Map<string, Answer>();
  const ranges = new Map<string, Answer>();
  for (const a of r.answers) {
    if (a.points === 0) instants.set(fillTemplate(a.expr, { ...filling, step: MINUTE }), a);
    else {
      const step = stepFor(interval.to - interval.from, filling.scrapeInterval, a.points);
      if (step !== a.step || alignToGrid(interval, step).from !== a.from) throw malformed("recording", "it was written by another version");
      ranges.set(`${step} ${fillTemplate(a.expr, { ...filling, step })}`, a);
    }
  }
  const find = (url: URL): { type: string; found: Answer | undefined } => {
    const query = url.searchParams.get("query") ?? "";
    if (url.pathname.endsWith("/query_range")) return { type: "matrix", found: ranges.get(`${url.searchParams.get("step") ?? ""} ${query}`) };
    return { type: "vector", found: url.pathname.endsWith("/query") ? instants.get(query) : undefined };
  };
  return (input) => {
    const url = new URL(input instanceof Request ? input.url : String(input), "file:///");
    if (url.pathname === "/api/findings") return Promise.resolve(json(200, r.findings));
    const { type, found } = find(url);
    if (!found || found.error !== "") {
      return Promise.resolve(json(422, { status: "error", errorType: "execution", error: found?.error ?? "The report does not contain this data." }));
    }
    const endAlone = type === "matrix" && url.searchParams.get("start") === url.searchParams.get("end");
    const result = found.series.map(({ m, v, e }) => {
      const points = (endAlone ? e : v).flatMap((value, i) => (value === null ? [] : [[endAlone ? r.to : found.from + i * found.step, String(value)]]));
      return type === "matrix" ? { metric: m, values: points } : { metric: m, value: points[0] ?? [found.from, "NaN"] };
    });
    return Promise.resolve(json(200, { status: "success", data: { resultType: type, result } }));
  };
}

function json(status: number, body: unknown): Response {
  return new Response(JSON.stringify(body), { status, headers: { "Content-Type": "application/json" } });
}
