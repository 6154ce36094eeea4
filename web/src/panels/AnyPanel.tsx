// SPDX-License-Identifier: Apache-2.0

// From a definition to its component.
import { BarsPanel } from "./BarsPanel";
import { ChartPanel } from "./ChartPanel";
import { FigurePanel } from "./FigurePanel";
import { TablePanel } from "./TablePanel";
import type { PanelDef } from "./types";

export function AnyPanel({ def }: { def: PanelDef }) {
  switch (def.kind) {
    case "lines":
    case "stacked":
      return <ChartPanel def={def} />;
    case "bars":
      return <BarsPanel def={def} />;
    case "figure":
      return <FigurePanel def={def} />;
    case "table":
      return <TablePanel def={def} />;
  }
}
