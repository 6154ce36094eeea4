// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { MOST_PANEL_PARAMS, resetPanels, setPanel } from "./panel-params";
import { DEFAULT_VIEW, formatView, parseView, type ViewState } from "./url";

const view = (panels: ViewState["panels"], page: ViewState["page"] = "system"): ViewState => ({ ...DEFAULT_VIEW, page, panels });

describe("what is set of panels", () => {
  it.each<ViewState["panels"]>([
    { system: { "cpu-by-mode": { scale: "log", only: "user: a & b=c" }, llc: { scale: "linear" } } },
    { system: { workloads: { sort: "-CPU cores" }, windows: { pick: "teescope_syscalls" } } },
    { system: { "syscall-shares": { path: ["redis · a:1", "x/y"], pick: "Calls" } } },
  ])("comes back from the address of %j", (panels) => {
    expect(parseView(formatView(view(panels)).slice(1))).toEqual(view(panels));
  });

  it("is readable, and belongs to one page only", () => {
    const panels = { system: { llc: { scale: "log" } }, overview: { workloads: { sort: "Kind" } } } as const;
    expect(formatView(view(panels))).toBe("/?page=system&scale=llc:log");
    expect(formatView(view(panels, "overview"))).toBe("/?sort=workloads:Kind");
    expect(formatView(view(panels, "status"))).toBe("/?page=status");
  });

  it.each(["scale=llc:cubic", "scale=llc", "only=:x", "only=LLC:x", "sort=workloads:", "only=" + "a".repeat(65) + ":x", "pick=a:" + "x".repeat(301)])(
    "is nothing where it is %s",
    (search) => {
      expect(parseView(search)).toEqual(DEFAULT_VIEW);
    },
  );

  it("is bounded", () => {
    const many = Array.from({ length: 200 }, (_, i) => `only=p${i}:x`).join("&");
    expect(Object.keys(parseView(many).panels?.["overview"] ?? {})).toHaveLength(MOST_PANEL_PARAMS);
  });
});

describe("setting a panel", () => {
  it("adds and removes settings without leftovers", () => {
    const one = setPanel(undefined, "tee", "a", { scale: "log" });
    const two = setPanel(one, "tee", "a", { only: "x" });
    expect(two).toEqual({ tee: { a: { scale: "log", only: "x" } } });
    expect(setPanel(one, "tee", "a", { scale: undefined })).toBeUndefined();
    expect(setPanel(one, "tee", "a", { scale: undefined, path: [] })).toBeUndefined();
  });

  it("sets back one, or all of a page", () => {
    const all = { tee: { a: { only: "x" }, b: { only: "y" } }, system: { a: { only: "z" } } };
    expect(resetPanels(all, "tee", "a")).toEqual({ tee: { b: { only: "y" } }, system: { a: { only: "z" } } });
    expect(resetPanels(all, "tee")).toEqual({ system: { a: { only: "z" } } });
    expect(resetPanels(undefined, "tee")).toBeUndefined();
  });
});
