// SPDX-License-Identifier: Apache-2.0

// Whether the server was updated since the page was loaded. Scripts that are loaded later have names without a version, so those of an
// updated server would be mixed with the scripts that run.

/** Milliseconds. */
const LONGEST = 10_000;

type Fetch = (url: string, init: RequestInit) => Promise<Response>;

async function tag(fetch: Fetch): Promise<string | null> {
  try {
    // The tag of the page is that of all its files.
    const { ok, headers } = await fetch("./", { method: "HEAD", cache: "no-store", signal: AbortSignal.timeout(LONGEST) });
    return ok ? headers.get("etag") : null;
  } catch {
    return null; // it does not answer, which other requests show
  }
}

/** Asks for the version of the page now, and returns a function that reports whether the server has another one. */
export function watchVersion(fetch: Fetch): () => Promise<boolean> {
  const loaded = tag(fetch);
  return async () => {
    const [before, now] = [await loaded, await tag(fetch)];
    return before !== null && now !== null && before !== now;
  };
}
