// SPDX-License-Identifier: Apache-2.0

// Finds the panel that shows the family of a piece of evidence.
import type { PageId } from "../../lib/url";
import { CONTAINERS } from "../../panels/dashboards/containers";
import { INFRASTRUCTURE } from "../../panels/dashboards/infrastructure";
import { SYSTEM } from "../../panels/dashboards/system";
import { TEE } from "../../panels/dashboards/tee";
import { expressions } from "../../panels/panel-queries";
import type { Section } from "../../panels/types";

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

/** Returns the families in an expression. */
function familiesOf(expr: string): string[] {
  return expr.match(/\b(?:teescope|sgx|container|node)_\w+/g) ?? [];
}

/** Returns the first panel with one of the families. Panels by label of the evidence come first on their pages. */
export function chartOf(query: string): Place | undefined {
  for (const family of familiesOf(query)) {
    for (const [page, sections] of PAGES) {
      const def = sections.flatMap((s) => s.panels).find((p) => familiesOf(expressions(p).join(" ")).includes(family));
      if (def) return { page, panel: def.id, title: def.title };
    }
  }
  return undefined;
}
