// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { profileView } from "./profile-link";

describe("the profile of a finding", () => {
  it("is that of its workload and time on the page", () => {
    expect(profileView("/api/profiles/merged?end=1700000000&format=html&start=1699999700&workload=a+%26+b")).toEqual({
      page: "profile",
      workloads: ["a & b"],
      filters: [],
      fixed: { from: 1_699_999_700, to: 1_700_000_000 },
      live: false,
      profile: undefined,
    });
  });

  it("is of the event of the finding", () => {
    expect(profileView("/api/profiles/merged?end=1700000000&event=ocalls&format=html&start=1699999700&workload=web").profile).toEqual({ of: "web", event: "ocalls" });
  });

  it("is compared with the time before the finding, also of a whole machine", () => {
    const view = profileView("/api/profiles/merged?base.end=1699999100&base.start=1699998800&end=1700000000&format=html&start=1699999700");
    expect(view.workloads).toEqual([]);
    expect(view.profile).toEqual({ of: "", base: { from: 1_699_998_800, to: 1_699_999_100 } });
  });
});
