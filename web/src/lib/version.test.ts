// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { watchVersion } from "./version";

/** A server whose page has these tags, one after the other. Null is a server without tags, undefined one that does not answer. */
function server(...tags: (string | null | undefined)[]): (url: string, init: RequestInit) => Promise<Response> {
  return (url, init) => {
    expect([url, init.method, init.cache]).toEqual(["./", "HEAD", "no-store"]);
    const tag = tags.shift();
    return tag === undefined ? Promise.reject(new TypeError("offline")) : Promise.resolve(new Response(null, { headers: tag === null ? {} : { ETag: tag } }));
  };
}

describe("the version of the page", () => {
  it.each([
    ["the same page", [`"a"`, `"a"`], false],
    ["an updated page", [`"a"`, `"b"`], true],
    ["a server that ended", [`"a"`, undefined], false],
    ["a proxy without tags", [null, null], false],
    ["a page that could not ask", [undefined, `"b"`], false],
  ] as const)("is compared: %s", async (_, tags, updated) => {
    expect(await watchVersion(server(...tags))()).toBe(updated);
  });

  it("is not that of a proxy's error", async () => {
    const answers = [new Response(null, { headers: { ETag: `"a"` } }), new Response(null, { status: 502, headers: { ETag: `"error"` } })];
    expect(await watchVersion(() => Promise.resolve(answers.shift() ?? Response.error()))()).toBe(false);
  });
});
