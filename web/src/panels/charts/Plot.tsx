// SPDX-License-Identifier: Apache-2.0

// A uPlot inside a component: made anew when the shape or the theme changes,
// otherwise given new data, and as wide as its parent.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Slot } from "../../lib/colour";
import { type Frame, stack } from "../../lib/series";
import type { Interval } from "../../lib/time";
import { useThemeName } from "../../lib/theme";
import type { Unit } from "../../lib/units";
import { type ChartEvents, chartOptions } from "./uplot";

interface PlotProps {
  frame: Frame;
  interval: Interval;
  slots: ReadonlyMap<string, Slot>;
  unit: Unit;
  stacked: boolean;
  /** What a screen reader says in place of the picture. */
  label: string;
  onCursor: (index: number | undefined) => void;
  onZoom: (from: number, to: number) => void;
}

/**
 * The columns of the plot. A stack is drawn from the top down, each band over
 * the one above it, so that fills need no bands.
 */
function columns(frame: Frame, stacked: boolean): uPlot.AlignedData {
  const values = stacked ? stack(frame).reverse() : frame.series.map((s) => s.values);
  return [frame.times, ...values];
}

export function Plot(props: PlotProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const latest = useRef(props);
  latest.current = props;
  const theme = useThemeName();
  const names = props.frame.series.map((s) => s.name);
  const shapeKey = JSON.stringify([names, [...props.slots], props.unit, props.stacked, theme]);

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const events: ChartEvents = {
      onCursor: (index) => {
        latest.current.onCursor(index);
      },
      onZoom: (from, to) => {
        latest.current.onZoom(from, to);
      },
      interval: () => latest.current.interval,
    };
    const { slots, unit, stacked, frame } = latest.current;
    const drawn = frame.series.map((s) => s.name);
    const shape = { names: stacked ? drawn.reverse() : drawn, slots, unit, stacked };
    const made = new uPlot(
      chartOptions(shape, events, element.clientWidth, element.clientHeight),
      columns(frame, stacked),
      element,
    );
    plot.current = made;
    const observer = new ResizeObserver(() => {
      made.setSize({ width: element.clientWidth, height: element.clientHeight });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = undefined;
    };
  }, [shapeKey]);

  useEffect(() => {
    plot.current?.setData(columns(props.frame, props.stacked));
  }, [props.frame, props.interval.from, props.interval.to, props.stacked]);

  return <div class="plot" ref={box} role="img" aria-label={props.label} />;
}
