// SPDX-License-Identifier: Apache-2.0
import type { PanelDef, Section } from "../types";

/** Returns the panel with this id, for a page that shows panels of another dashboard. */
export function panel(sections: readonly Section[], id: string): PanelDef {
  const def = sections.flatMap((s) => s.panels).find((p) => p.id === id);
  if (!def) throw new Error(`no section has the panel ${id}`);
  return def;
}

export function pick(sections: readonly Section[], ...ids: readonly string[]): PanelDef[] {
  return ids.map((id) => panel(sections, id));
}
