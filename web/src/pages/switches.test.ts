// SPDX-License-Identifier: Apache-2.0

import { expect, it } from "vitest";
import { switched } from "./Switches";

it("sends the rule of a watch and the event of a profile only", () => {
  expect(switched("watch", "web", "ocalls", "llc")).toEqual({ kind: "watch", rule: "workload=web" });
  expect(switched("pause", "web", "ocalls", "llc")).toEqual({ kind: "pause", rule: "llc" });
  expect(switched("timing", "web", "ocalls", "llc")).toEqual({ kind: "timing" });
  expect(switched("profile", "web", "ocalls", "llc")).toEqual({ kind: "profile", event: "ocalls" });
  expect(switched("profile", "web", "", "llc")).toEqual({ kind: "profile" });
});
