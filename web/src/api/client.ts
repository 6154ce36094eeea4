// SPDX-License-Identifier: Apache-2.0

// Client of the Prometheus HTTP API on the page's own origin. It limits concurrent requests, cancels requests whose
// answers are no longer needed, and validates every answer. It is independent of metrics.
import { type Control, control } from "./control";
import { type Board, board, boards } from "./dashboards";
import { aborted, ApiError, asApiError, malformed, notAnalysed, queryFailed, starting, timedOut, unavailable, unreachable } from "./errors";
import { report, type Report } from "./findings";
import { fleet, type FleetView } from "./fleet";
import { Limiter } from "./limiter";
import { type Run, runs } from "./runs";
import { type Threads, threads } from "./threads";
import {
  type InstantSample, type Labels, labels, matrix, metadata, type MetricMetadata, names, type RangeSeries, type Target, targets, vector, vectorOrScalar,
} from "./types";
import { type Decoder, object, text } from "./validate";

const BOARDS = "dashboards/own";
/** Limit of names in one answer. */
const MOST_NAMES = 5000;

export interface ClientOptions {
  fetch?: typeof fetch;
  /** Maximum number of concurrent requests. */
  concurrency?: number;
  timeoutSeconds?: number;
  /** Called with the outcome of each request, except of cancelled ones. */
  onAnswer?: (failure: ApiError | undefined) => void;
}

export class Client {
  private readonly fetch: typeof fetch;
  private readonly limiter: Limiter;
  private readonly timeoutSeconds: number;
  private readonly onAnswer: (failure: ApiError | undefined) => void;
  /** Whether the server has said that it runs no agent. This does not change while it runs. */
  private agentless = false;
  /** The running request for the measurements of the agent. */
  private controlled: Promise<Control | null> | undefined;

  constructor(options: ClientOptions = {}) {
    this.fetch = options.fetch ?? ((input, init) => fetch(input, init));
    this.limiter = new Limiter(options.concurrency ?? 6);
    this.timeoutSeconds = options.timeoutSeconds ?? 20;
    this.onAnswer = options.onAnswer ?? (() => undefined);
  }

  /** Evaluates an expression at one moment (Unix seconds). */
  instant(query: string, time: number, signal?: AbortSignal): Promise<InstantSample[]> {
    return this.request("query", { query, time: String(time) }, vector, signal);
  }

  /** Evaluates an expression that a user wrote. Its result may be a scalar. */
  evaluate(query: string, time: number, signal?: AbortSignal): Promise<InstantSample[]> {
    return this.request("query", { query, time: String(time) }, vectorOrScalar, signal);
  }

  /** Evaluates an expression at each step of an interval. */
  range(query: string, from: number, to: number, step: number, signal?: AbortSignal): Promise<RangeSeries[]> {
    const params = { query, start: String(from), end: String(to), step: String(step) };
    return this.request("query_range", params, matrix, signal);
  }

  /** Returns at most `limit` values of a label on series that match any of the selectors. */
  labelValues(label: string, match: string | readonly string[], from: number, to: number, signal?: AbortSignal, limit?: number): Promise<string[]> {
    return this.request(`label/${encodeURIComponent(label)}/values`, matched([match].flat(), from, to, limit), names, signal);
  }

  /** Returns the labels of at most `limit` series that match any of the selectors. */
  series(match: readonly string[], from: number, to: number, limit: number, signal?: AbortSignal): Promise<Labels[]> {
    return this.request("series", matched(match, from, to, limit), labels, signal);
  }

  /** Returns the label names of series that match. */
  labelNames(match: string, from: number, to: number, signal?: AbortSignal): Promise<string[]> {
    return this.request("labels", matched([match], from, to, MOST_NAMES), names, signal);
  }

  /** Returns type and help of the metrics that are scraped now, by name. */
  metadata(signal?: AbortSignal): Promise<Record<string, MetricMetadata[]>> {
    return this.request("metadata", { limit: String(MOST_NAMES), limit_per_metric: "1" }, metadata, signal);
  }

  /** Returns why the server refuses a regular expression, or undefined. The server only parses a query with it. */
  async patternProblem(pattern: string, signal?: AbortSignal): Promise<string | undefined> {
    try {
      await this.request("format_query", { query: `x{x=~${JSON.stringify(pattern)}}` }, text, signal);
      return undefined;
    } catch (thrown) {
      const reason = thrown instanceof ApiError ? /parse error: (?:error parsing regexp: )?(.+)$/s.exec(thrown.message)?.[1] : undefined;
      if (reason === undefined) throw thrown;
      return reason;
    }
  }

  targets(signal?: AbortSignal): Promise<Target[]> {
    return this.request("targets", { state: "active" }, targets, signal);
  }

  /**
   * Returns the newest report of the analysis, or that of the window up to a moment (Unix seconds), with the muted findings
   * if wanted.
   */
  findings(at?: number, signal?: AbortSignal, muted = false): Promise<Report> {
    const params = { ...(at !== undefined && { at: String(at) }), ...(muted && { muted: "true" }) };
    return this.requestAt("findings", `api/findings?${new URLSearchParams(params).toString()}`, whole, report, signal);
  }

  /** Returns all machines, with the pods of one, and what the move of a pod would change, if these are named. */
  fleet(params: Record<string, string>, signal?: AbortSignal): Promise<FleetView> {
    return this.requestAt("fleet", `api/fleet?${new URLSearchParams(params).toString()}`, whole, fleet, signal);
  }

  /** Returns what a path of the server's own API answers, about files if there are some. The reason of a refusal is the server's. */
  answer<T>(path: string, params: URLSearchParams, decode: Decoder<T>, signal?: AbortSignal, files: readonly File[] = []): Promise<T> {
    const open = async (r: Response): Promise<unknown> => (r.ok ? parse(r, await r.text()) : unwrap(r));
    const body = new FormData();
    for (const file of files) body.append("profile", file);
    return this.requestAt(path, `${path}?${params.toString()}`, open, decode, signal, files.length > 0 ? body : undefined);
  }

  /** Returns the threads of a workload on this machine, or undefined if no agent here watches it. */
  threads(workload: string, signal?: AbortSignal): Promise<Threads | undefined> {
    const url = `api/top/threads?${new URLSearchParams({ workload }).toString()}`;
    const open = async (r: Response): Promise<unknown> => (r.status === 404 ? undefined : whole(r));
    return this.requestAt("threads", url, open, (value, path) => (value === undefined ? undefined : threads(value, path)), signal);
  }

  /** Returns the lines of a manifest that advice changes, as text, or why there are none. */
  manifest(params: Record<string, string>): Promise<string[]> {
    const url = `api/findings/manifest?${new URLSearchParams(params).toString()}`;
    return this.fetch(url).then((r) => r.text()).then((all) => all.split("\n"), () => [unreachable().message]);
  }

  /** Returns the temporary measurements of this server's agent, or null if the server runs no agent. Panels share an answer. */
  control(): Promise<Control | null> {
    if (this.agentless) return Promise.resolve(null);
    const ask = async (): Promise<Control | null> => {
      try {
        const answer = await this.requestAt("control", "api/control", whole, (value, path) => (value === null ? null : control(value, path)));
        this.agentless = answer === null;
        return answer;
      } finally {
        this.controlled = undefined;
      }
    };
    return (this.controlled ??= ask());
  }

  /** Returns the runs that were pushed to the server, or null if it keeps none. */
  runs(signal?: AbortSignal): Promise<Run[] | null> {
    return this.requestAt("runs", "api/runs", whole, (value, path) => (value === null ? null : runs(value, path)), signal);
  }

  /** Returns the dashboards that users of the server keep. */
  boards(signal?: AbortSignal): Promise<Board[]> {
    return this.requestAt("dashboards", `api/${BOARDS}`, whole, boards, signal);
  }

  /** Keeps a new dashboard, or changes the one with the ID. */
  async keep(id: string, kept: Pick<Board, "title" | "panels"> & { version?: number }): Promise<Board> {
    return board(await this.changed(BOARDS, id, kept), "dashboard");
  }

  /**
   * Makes a silence, switches a measurement on, or pushes a run file. Without `added` it ends the silence or measurement with
   * the ID, or deletes the dashboard or run. Returns why this failed, or an empty text.
   */
  async change(list: "findings/silences" | "control" | `runs${string}` | typeof BOARDS, id: string, added?: object): Promise<string> {
    try {
      await this.changed(list, id, added);
      return "";
    } catch (thrown) {
      return asApiError(thrown).message;
    }
  }

  /** Adds an item to a list, or replaces the one with the ID. Without an item it removes the one with the ID. Returns the answer. */
  private async changed(list: string, id: string, added?: object): Promise<unknown> {
    let response;
    try {
      response = await this.fetch(`api/${list}${id && `/${id}`}`, {
        signal: AbortSignal.timeout(this.timeoutSeconds * 1000),
        ...(added
          ? {
              method: id === "" ? "POST" : "PUT",
              headers: { "Content-Type": added instanceof Blob ? "application/octet-stream" : "application/json" },
              body: added instanceof Blob ? added : JSON.stringify(added),
            }
          : { method: "DELETE" }),
      });
    } catch {
      throw unreachable();
    }
    const written = await response.text();
    const answer = written === "" ? {} : object(parse(response, written), "answer");
    if (!response.ok) throw new ApiError("query", String(answer["error"]), "");
    return answer;
  }

  private request<T>(
    path: string,
    params: Record<string, string> | [string, string][],
    decode: Decoder<T>,
    signal?: AbortSignal,
  ): Promise<T> {
    return this.requestAt(path, `api/v1/${path}?${new URLSearchParams(params).toString()}`, unwrap, decode, signal);
  }

  private requestAt<T>(
    path: string,
    url: string,
    open: (response: Response) => Promise<unknown>,
    decode: Decoder<T>,
    signal?: AbortSignal,
    sent?: FormData,
  ): Promise<T> {
    return this.limiter.run(async () => {
      try {
        const body = await this.send(url, open, signal, sent);
        const answer = decode(body, path);
        this.onAnswer(undefined);
        return answer;
      } catch (thrown) {
        const failure = asApiError(thrown);
        if (failure.kind !== "aborted") this.onAnswer(failure);
        throw failure;
      }
    }, signal);
  }

  private async send(url: string, open: (response: Response) => Promise<unknown>, signal?: AbortSignal, body?: FormData): Promise<unknown> {
    const timeout = new AbortController();
    const timer = setTimeout(() => {
      timeout.abort();
    }, this.timeoutSeconds * 1000);
    const withdraw = (): void => {
      timeout.abort();
    };
    signal?.addEventListener("abort", withdraw);
    try {
      const response = await this.fetch(url, { signal: timeout.signal, headers: { Accept: "application/json" }, ...(body && { method: "POST", body }) });
      return await open(response);
    } catch (error) {
      if (signal?.aborted) throw aborted();
      if (timeout.signal.aborted) throw timedOut(this.timeoutSeconds);
      if (error instanceof ApiError) throw error;
      throw unreachable();
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", withdraw);
    }
  }
}

function matched(match: readonly string[], from: number, to: number, limit?: number): [string, string][] {
  const ends: [string, string][] = [["start", String(from)], ["end", String(to)]];
  return [...match.map((m): [string, string] => ["match[]", m]), ...ends, ...(limit === undefined ? [] : [["limit", String(limit)] as [string, string]])];
}

/** Reads an answer without envelope, unless it is an error. */
async function whole(response: Response): Promise<unknown> {
  if (response.status === 404) throw notAnalysed();
  return response.ok ? parse(response, await response.text()) : unwrap(response);
}

function parse(response: Response, written: string): unknown {
  try {
    return JSON.parse(written);
  } catch {
    throw response.status === 503 ? refusedAtTheDoor(response, written) : malformed(`status ${response.status}`, "the body is not JSON");
  }
}

/** Takes the data out of Prometheus' envelope {status, data | errorType, error}. */
async function unwrap(response: Response): Promise<unknown> {
  const envelope = object(parse(response, await response.text()), "answer");
  if (envelope["status"] === "success") return envelope["data"];
  const type = typeof envelope["errorType"] === "string" ? envelope["errorType"] : "unknown";
  const message = typeof envelope["error"] === "string" ? envelope["error"] : "no reason given";
  throw type === "unavailable" ? unavailable(message) : queryFailed(response.status, type, message);
}

/**
 * Explains a 503 that does not come from the API. teescope gives its reason as text; a proxy in front of it sends a page.
 */
function refusedAtTheDoor(response: Response, written: string): ApiError {
  const isText = response.headers.get("Content-Type")?.startsWith("text/plain") === true;
  return isText ? unavailable(written.trim()) : starting();
}
