// SPDX-License-Identifier: Apache-2.0

// Regular expressions of the user. The server checks them before any panel is queried with them.
import { useEffect } from "preact/hooks";
import { useSession } from "../lib/session";
import { useStore } from "../lib/store";
import { applyChecks } from "../lib/url";
import { useRequest } from "./use-data";

/** Checks the patterns of the address. Only one component of the page calls it. It retries at the next tick. */
export function usePatternChecks(): void {
  const session = useSession();
  const { unchecked = [] } = useStore(session.view);
  const now = useStore(session.now);
  const patterns = [...new Set(unchecked.map((f) => f.text))];
  const { value } = useRequest(
    ({ client }, signal) => Promise.all(patterns.map(async (text) => ({ text, problem: (await client.patternProblem(text, signal)) ?? "" }))),
    patterns.join("\n"),
    String(now),
    patterns.length > 0,
  );
  useEffect(() => {
    if (!value) return;
    for (const { text, problem } of value) session.checked.set(text, problem);
    session.view.update((v) => applyChecks(v, session.checked));
  }, [session, value]);
}

/**
 * Returns the server's answer about a pattern while it is typed: the reason why it is refused, "" for a valid one,
 * undefined until it answers.
 */
export function usePatternCheck(pattern: string): string | undefined {
  const session = useSession();
  const known = session.checked.get(pattern);
  const { value, stale } = useRequest(
    async ({ client }, signal) => (await client.patternProblem(pattern, signal)) ?? "",
    pattern,
    "",
    pattern !== "" && known === undefined,
  );
  useEffect(() => {
    if (value !== undefined && !stale) session.checked.set(pattern, value);
  }, [session, pattern, value, stale]);
  return pattern === "" ? undefined : (known ?? (stale ? undefined : value));
}
