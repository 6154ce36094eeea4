// SPDX-License-Identifier: Apache-2.0

// Chooses the component of a definition.
import { BarsPanel } from "./BarsPanel";
import { BoxPanel } from "./BoxPanel";
import { ChartPanel } from "./ChartPanel";
import { FigurePanel } from "./FigurePanel";
import { FlamePanel } from "./FlamePanel";
import { GaugePanel } from "./GaugePanel";
import { HeatmapPanel } from "./HeatmapPanel";
import { HistogramPanel } from "./HistogramPanel";
import { MatrixPanel } from "./MatrixPanel";
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
    case "heatmap":
      return <HeatmapPanel def={def} />;
    case "histogram":
      return <HistogramPanel def={def} />;
    case "gauge":
      return <GaugePanel def={def} />;
    case "box":
      return <BoxPanel def={def} />;
    case "flame":
      return <FlamePanel def={def} />;
    case "matrix":
      return <MatrixPanel def={def} />;
  }
}
