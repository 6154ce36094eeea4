// SPDX-License-Identifier: Apache-2.0

// Errors between the page and its server. Each has a message and advice.

type FailureKind =
  /** No answer: the server is gone or unreachable. */
  | "unreachable"
  /** The server took too long. */
  | "timeout"
  /** The server answered, but refused or could not run the query. */
  | "query"
  /** The answer does not have the format of the Prometheus API. */
  | "malformed"
  /** The page cancelled the request. */
  | "aborted";

export class ApiError extends Error {
  readonly kind: FailureKind;
  /** What the user can do about it. */
  readonly advice: string;

  constructor(kind: FailureKind, message: string, advice: string) {
    super(message);
    this.name = "ApiError";
    this.kind = kind;
    this.advice = advice;
  }
}

export function unreachable(): ApiError {
  return new ApiError(
    "unreachable",
    "No answer from teescope.",
    "Is `teescope up` still running? The data shown stays, and the page retries.",
  );
}

export function timedOut(seconds: number): ApiError {
  return new ApiError(
    "timeout",
    `No answer within ${seconds} s.`,
    "The machine may be busy. Choose a shorter time range or fewer workloads.",
  );
}

export function starting(): ApiError {
  return new ApiError("unreachable", "teescope is starting.", "The charts appear as soon as it is ready.");
}

/** The server gives its reason: it opens the database, it stops, or it has too many connections. */
export function unavailable(reason: string): ApiError {
  return new ApiError("unreachable", `No data for now: ${reason}`, "The data shown stays, and the page retries.");
}

export function queryFailed(status: number, type: string, message: string): ApiError {
  const advice =
    type === "timeout" || /too many samples/.test(message)
      ? "Choose a shorter time range or fewer workloads."
      : "The query of the panel or the server is at fault, not the workload.";
  return new ApiError("query", `The server refused the query (${status} ${type}): ${message}`, advice);
}

/** The server runs without analysis. */
export function notAnalysed(): ApiError {
  return new ApiError(
    "query",
    "The analysis is off on this server.",
    "Start it with --analysis.enabled=true, or run teescope analyze --server with its address.",
  );
}

export function malformed(where: string, what: string): ApiError {
  return new ApiError(
    "malformed",
    `The answer is not a valid answer of the Prometheus API: ${where}: ${what}.`,
    "The page and the server may have different versions, or a proxy answers instead of the server.",
  );
}

export function aborted(): ApiError {
  return new ApiError("aborted", "The request was cancelled.", "");
}

/** Converts any thrown value into an ApiError. */
export function asApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new ApiError("malformed", message, "This is an error in the page.");
}
