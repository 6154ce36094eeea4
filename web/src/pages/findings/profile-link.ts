// SPDX-License-Identifier: Apache-2.0

// The view of a profile that a finding leads to.
import type { ViewState } from "../../lib/url";

/** Returns the page Profile with the workload and the times of a path of the server, which draws the same as a picture. */
export function profileView(path: string): Partial<ViewState> {
  const asked = new URLSearchParams(path.slice(path.indexOf("?")));
  const of = asked.get("workload") ?? "";
  const interval = (prefix: string): { from: number; to: number } | undefined => {
    const [from, to] = ["start", "end"].map((name) => Number(asked.get(prefix + name)));
    return from !== undefined && to !== undefined && from < to ? { from, to } : undefined;
  };
  const event = asked.get("event") ?? "";
  const [fixed, base] = [interval(""), interval("base.")];
  return {
    page: "profile",
    workloads: of === "" ? [] : [of],
    filters: [],
    ...(fixed && { fixed, live: false }),
    profile: base || event ? { of, ...(event && { event }), ...(base && { base }) } : undefined,
  };
}
