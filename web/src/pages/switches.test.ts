// SPDX-License-Identifier: Apache-2.0

import { expect, it } from "vitest";
import { switched } from "./Switches";

it("sends the rule of a watch and the event of a profile only", () => {
  expect(switched("watch", "web", "ocalls")).toEqual({ kind: "watch", rule: "workload=web" });
  expect(switched("timing", "web", "ocalls")).toEqual({ kind: "timing" });
  expect(switched("profile", "web", "ocalls")).toEqual({ kind: "profile", event: "ocalls" });
  expect(switched("profile", "web", "")).toEqual({ kind: "profile" });
});
