// SPDX-License-Identifier: Apache-2.0
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { Client, type ClientOptions } from "./client";
import { ApiError } from "./errors";

// The tests use a real server on loopback and the real fetch.
let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
  server = undefined;
});

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

async function clientFor(handler: Handler, options: ClientOptions = {}): Promise<Client> {
  const made = createServer(handler);
  server = made;
  await new Promise<void>((resolve) => made.listen(0, "127.0.0.1", resolve));
  const address = made.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  const base = `http://127.0.0.1:${address.port}/`;
  return new Client({ fetch: (input, init) => fetch(new URL(input as string, base), init), ...options });
}

const answer =
  (body: unknown, status = 200): Handler =>
  (_, response) => {
    response.writeHead(status).end(JSON.stringify(body));
  };

const success = (resultType: string, result: unknown): unknown => ({ status: "success", data: { resultType, result } });

async function failure(promise: Promise<unknown>): Promise<ApiError> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof ApiError) return error;
  }
  throw new Error("no ApiError was thrown");
}

describe("Client", () => {
  it("sends a range query with all parameters", async () => {
    let url = "";
    const client = await clientFor((request, response) => {
      url = request.url ?? "";
      answer(success("matrix", [{ metric: { a: "b" }, values: [[5, "1.5"], [10, "NaN"], [15, "+Inf"]] }]))(request, response);
    });
    const [series] = await client.range('x{a="b"}', 5, 15, 5);
    expect(url).toBe("/api/v1/query_range?query=x%7Ba%3D%22b%22%7D&start=5&end=15&step=5");
    expect(series).toEqual({ metric: { a: "b" }, values: [[5, 1.5], [10, NaN], [15, Infinity]] });
  });

  it.each([
    ["another result type", success("scalar", [1, "2"]), "resultType: wanted vector, found scalar"],
    ["a number for a value", success("vector", [{ metric: {}, value: [1, 2] }]), "query.result[0].value[1]: expected a string, found a number"],
    ["a value that is none", success("vector", [{ metric: {}, value: [1, "abc"] }]), 'found "abc"'],
    ["no metric", success("vector", [{ value: [1, "2"] }]), "query.result[0].metric: expected an object, found nothing"],
    ["no object at all", [], "answer: expected an object, found an array"],
  ])("refuses %s and says where", async (_, body, want) => {
    const client = await clientFor(answer(body));
    const error = await failure(client.instant("x", 1));
    expect(error.kind).toBe("malformed");
    expect(error.message).toContain(want);
  });

  it("accepts a scalar as the answer to an instant query of a user", async () => {
    const client = await clientFor(answer(success("scalar", [1, "2"])));
    expect(await client.evaluate("1 + 1", 1)).toEqual([{ metric: {}, value: [1, 2] }]);
  });

  it("queries names and metadata of metrics with a limit", async () => {
    const urls: string[] = [];
    const client = await clientFor((request, response) => {
      urls.push(request.url ?? "");
      const isNames = request.url?.includes("/labels?") === true;
      answer({ status: "success", data: isNames ? ["a"] : { up: [{ type: "gauge", help: "h", unit: "" }] } })(request, response);
    });
    expect(await client.labelNames("up", 5, 9)).toEqual(["a"]);
    expect(await client.metadata()).toEqual({ up: [{ type: "gauge", help: "h" }] });
    expect(urls.every((url) => url.includes("limit=5000"))).toBe(true);
  });

  it("passes on what the server has against a query", async () => {
    const client = await clientFor(answer({ status: "error", errorType: "bad_data", error: "parse error" }, 400));
    const error = await failure(client.instant("(", 1));
    expect(error).toMatchObject({ kind: "query", message: "The server refused the query (400 bad_data): parse error" });
  });

  it("has a pattern checked without running a query", async () => {
    const urls: string[] = [];
    const said = 'invalid parameter "query": 1:6: parse error: error parsing regexp: missing closing ): `a(b`';
    const client = await clientFor((request, response) => {
      urls.push(request.url ?? "");
      const wrong = request.url?.includes("a%28b") === true;
      const body = wrong ? { status: "error", errorType: "bad_data", error: said } : { status: "success", data: "x" };
      answer(body, wrong ? 400 : 200)(request, response);
    });
    expect(await client.patternProblem("a(b")).toBe("missing closing ): `a(b`");
    expect(await client.patternProblem("a.b")).toBeUndefined();
    expect(urls.every((url) => url.startsWith("/api/v1/format_query?"))).toBe(true);
  });

  it("does not treat other failures as a wrong pattern", async () => {
    const client = await clientFor(answer({ status: "error", errorType: "unavailable", error: "the database is being opened" }, 503));
    expect(await failure(client.patternProblem("a"))).toMatchObject({ kind: "unreachable" });
  });

  it("knows a proxy's page from an answer", async () => {
    const client = await clientFor((_, response) => response.writeHead(502).end("<html>"));
    expect((await failure(client.targets())).kind).toBe("malformed");
  });

  it("knows a server that is not ready yet", async () => {
    const client = await clientFor((_, response) => response.writeHead(503).end("not ready"));
    expect(await failure(client.instant("x", 1))).toMatchObject({ kind: "unreachable", message: "teescope is starting." });
  });

  it.each([
    ["opens its database", { errorType: "unavailable", error: "the database is being opened" }, "unreachable", "No data for now: the database is being opened"],
    ["is busy", { errorType: "timeout", error: "teescope is busy" }, "query", "The server refused the query (503 timeout): teescope is busy"],
    ["gives no reason", {}, "query", "The server refused the query (503 unknown): no reason given"],
  ])("passes on the reason of a server that %s", async (_, reason, kind, message) => {
    const client = await clientFor(answer({ status: "error", ...reason }, 503));
    expect(await failure(client.instant("x", 1))).toMatchObject({ kind, message });
  });

  it("advises to ask a busy server for less", async () => {
    const client = await clientFor(answer({ status: "error", errorType: "timeout", error: "teescope is busy" }, 503));
    expect((await failure(client.instant("x", 1))).advice).toBe("Choose a shorter time range or fewer workloads.");
  });

  it("passes on the reason of a server that has too many connections", async () => {
    const client = await clientFor((_, response) =>
      response.writeHead(503, { "Content-Type": "text/plain; charset=utf-8" }).end("teescope has as many connections as it can serve.\n"),
    );
    expect(await failure(client.instant("x", 1))).toMatchObject({
      kind: "unreachable",
      message: "No data for now: teescope has as many connections as it can serve.",
    });
  });

  it("reports an unreachable server", async () => {
    const client = await clientFor((request) => request.socket.destroy());
    expect((await failure(client.instant("x", 1))).kind).toBe("unreachable");
  });

  it("gives up after a time", async () => {
    const client = await clientFor(() => undefined, { timeoutSeconds: 0.05 });
    expect((await failure(client.instant("x", 1))).kind).toBe("timeout");
  });

  it("cancels a request without reporting an outcome", async () => {
    const outcomes: unknown[] = [];
    const client = await clientFor(() => undefined, { onAnswer: (outcome) => outcomes.push(outcome) });
    const control = new AbortController();
    const asked = client.instant("x", 1, control.signal);
    control.abort();
    expect((await failure(asked)).kind).toBe("aborted");
    expect(outcomes).toEqual([]);
  });

  it("limits concurrent requests, and never sends cancelled ones", async () => {
    let open = 0;
    let most = 0;
    let served = 0;
    const client = await clientFor(
      (request, response) => {
        most = Math.max(most, ++open);
        setTimeout(() => {
          open--;
          served++;
          answer(success("vector", []))(request, response);
        }, 5);
      },
      { concurrency: 2 },
    );
    const control = new AbortController();
    const asked = Array.from({ length: 8 }, (_, i) => client.instant(`x${i}`, 1, i === 7 ? control.signal : undefined));
    control.abort();
    await Promise.allSettled(asked);
    expect({ most, served }).toEqual({ most: 2, served: 7 });
  });

  it("reads targets and forgives what is left out", async () => {
    const client = await clientFor(
      answer({ status: "success", data: { activeTargets: [{ labels: { job: "teescope" }, scrapeUrl: "http://x/metrics", health: "up" }] } }),
    );
    expect(await client.targets()).toEqual([
      { labels: { job: "teescope" }, scrapeUrl: "http://x/metrics", health: "up", lastError: "", lastScrape: "", lastScrapeDuration: 0, scrapeInterval: "" },
    ]);
  });
});

describe("what is measured for a while", () => {
  const list = {
    allowed: true, machine: "n", max_seconds: 3600, max_changes: 16,
    changes: [{ id: "A1", kind: "timing", by_verified: false, begin: "2026-01-02T15:00:00Z", end: "2026-01-02T15:10:00Z", seconds_left: 9.5 }],
  };
  it("is read with defaults for what is left out", async () => {
    const read = await (await clientFor(answer(list))).control();
    expect(read?.changes).toEqual([
      { id: "A1", kind: "timing", rule: "", event: "", by: "", by_verified: false, reason: "", end: "2026-01-02T15:10:00Z", seconds_left: 9.5 },
    ]);
  });

  it("is nothing on a server without an agent, and an error if the agent does not answer", async () => {
    let asked = 0;
    const agentless = await clientFor((request, response) => {
      asked++;
      answer(null)(request, response);
    });
    const several = Promise.all([agentless.control(), agentless.control()]);
    expect([await several, await agentless.control(), asked]).toEqual([[null, null], null, 1]); // it is asked once
    server?.close();
    const gone = await clientFor(answer({ status: "error", errorType: "execution", error: "asking the agent: nobody" }, 502));
    await expect(gone.control()).rejects.toMatchObject({ kind: "query", message: expect.stringContaining("asking the agent: nobody") as string });
  });
});

describe("runs", () => {
  it("are read, and a file is pushed as it is", async () => {
    const kept = [{ id: "a1", name: "redis.tsrun", started: "2026-01-02T15:00:00Z", repetitions: 3, labels: { commit: "x" } }];
    expect(await (await clientFor(answer(kept))).runs()).toEqual(kept);
    server?.close();
    expect(await (await clientFor(answer(null))).runs()).toBeNull();
    server?.close();
    const sent: unknown[] = [];
    const client = await clientFor((request, response) => {
      request.setEncoding("utf8").on("data", (body: string) => sent.push([request.method, request.url, request.headers["content-type"], body]));
      request.on("end", () => {
        answer({ status: "error", error: "not a run file" }, 400)(request, response);
      });
    });
    expect(await client.change("runs?name=a%20b", "", new File(["bytes"], "a b"))).toBe("not a run file");
    expect(sent).toEqual([["POST", "/api/runs?name=a%20b", "application/octet-stream", "bytes"]]);
  });
});

describe("silences", () => {
  it("are made and ended", async () => {
    const asked: string[] = [];
    const client = await clientFor((request, response) => {
      let body = "";
      request.on("data", (part: Buffer) => (body += part.toString()));
      request.on("end", () => {
        asked.push(`${request.method ?? ""} ${request.url ?? ""} ${request.headers["content-type"] ?? ""} ${body}`);
        response.writeHead(request.method === "POST" ? 200 : 204).end();
      });
    });
    expect(await client.change("findings/silences", "", { kind: "mute" })).toBe("");
    expect(await client.change("findings/silences", "A1")).toBe("");
    expect(asked).toEqual(['POST /api/findings/silences application/json {"kind":"mute"}', "DELETE /api/findings/silences/A1  "]);
  });

  it("say why they are refused", async () => {
    expect(await (await clientFor(answer({ status: "error", error: "a silence needs a comment" }, 400))).change("findings/silences", "", {})).toBe("a silence needs a comment");
    server?.close();
    expect(await (await clientFor((request) => request.socket.destroy())).change("findings/silences", "A1")).toContain("teescope");
  });
});

describe("kept dashboards", () => {
  const kept = { id: "a", version: 2, title: "A", panels: [{ title: "p", expr: "up", show: "table", unit: "furlongs" }], changedAt: "2026-01-01T00:00:00Z" };

  it("are read, made, changed and deleted", async () => {
    const asked: string[] = [];
    const client = await clientFor((request, response) => {
      let body = "";
      request.on("data", (part: Buffer) => (body += part.toString()));
      request.on("end", () => {
        asked.push(`${request.method ?? ""} ${request.url ?? ""} ${body}`);
        answer(request.method === "GET" ? [kept] : kept)(request, response);
      });
    });
    expect(await client.boards()).toEqual([{ ...kept, changedBy: "", panels: [{ title: "p", expr: "up", show: "table", unit: "" }] }]);
    expect((await client.keep("", { title: "A", panels: [] })).id).toBe("a");
    await client.keep("a", { version: 2, title: "A", panels: [] });
    expect(await client.change("dashboards/own", "a")).toBe("");
    expect(asked).toEqual([
      "GET /api/dashboards/own ",
      'POST /api/dashboards/own {"title":"A","panels":[]}',
      'PUT /api/dashboards/own/a {"version":2,"title":"A","panels":[]}',
      "DELETE /api/dashboards/own/a ",
    ]);
  });

  it("say why a change is refused", async () => {
    const client = await clientFor(answer({ status: "error", error: "somebody else has changed the dashboard" }, 409));
    expect((await failure(client.keep("a", { version: 1, title: "A", panels: [] }))).message).toBe("somebody else has changed the dashboard");
  });
});

describe("the lines of a manifest", () => {
  it("are those of the answer, or say why there are none", async () => {
    let asked: unknown;
    const answering = new Client({ fetch: (url) => ((asked = url), Promise.resolve(new Response("high: a (b)\n+x = 1\n", { status: 404 }))) });
    expect(await answering.manifest({ rule: "a", workload: "b c" })).toEqual(["high: a (b)", "+x = 1", ""]);
    expect(asked).toBe("api/findings/manifest?rule=a&workload=b+c");
    const offline = new Client({ fetch: () => Promise.reject(new TypeError("offline")) });
    expect(await offline.manifest({})).toHaveLength(1);
  });
});
