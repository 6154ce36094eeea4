// SPDX-License-Identifier: Apache-2.0

// From the query of a piece of evidence to the panel that draws the same family.
import type { PageId } from "../../lib/url";
import { CONTAINERS, INFRASTRUCTURE, SYSTEM, TEE } from "../../panels/defs";
import type { PanelDef, Section } from "../../panels/types";

export interface Place {
  page: PageId;
  panel: string;
  title: string;
}

const PAGES: readonly [PageId, readonly Section[]][] = [
  ["tee", TEE],
  ["system", SYSTEM],
  ["containers", CONTAINERS],
  ["infrastructure", INFRASTRUCTURE],
];

/** The families that an expression names. */
export function familiesOf(expr: string): string[] {
  return expr.match(/\b(?:teescope|sgx|container|node)_\w+/g) ?? [];
}

function expressions(def: PanelDef): string {
  switch (def.kind) {
    case "figure":
      return def.query.expr;
    case "table":
      return def.columns.map((c) => c.expr).join(" ");
    default:
      return def.queries.map((q) => q.expr).join(" ");
  }
}

/** The first panel with one of the families, in their order; those by label of the evidence come first on their pages. */
export function chartOf(query: string): Place | undefined {
  for (const family of familiesOf(query)) {
    for (const [page, sections] of PAGES) {
      const def = sections.flatMap((s) => s.panels).find((p) => familiesOf(expressions(p)).includes(family));
      if (def) return { page, panel: def.id, title: def.title };
    }
  }
  return undefined;
}
