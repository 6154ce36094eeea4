// SPDX-License-Identifier: Apache-2.0

// A heat map: a canvas, a cursor for mouse and arrow keys, the cell under it in words, and the colour scale.
import { useEffect, useRef, useState } from "preact/hooks";
import { useSession } from "../../lib/session";
import { useStore } from "../../lib/store";
import { useThemeName } from "../../lib/theme";
import { formatClock, type Interval } from "../../lib/time";
import { formatShare, formatValue, type Unit } from "../../lib/units";
import { bucketName, type Buckets, columnTotal, greatestCell, heatValue, lowerBound } from "../buckets";
import { marksNear, sayMarks } from "../marks";
import { shared, useMarks } from "../use-marks";
import { cellAt, drawHeat, heatBox, heatColour, type HeatPicture, heatStops } from "./heat-draw";
import { MarkList } from "./MarkList";

interface HeatProps {
  buckets: Buckets;
  allBounds: readonly number[];
  step: number;
  interval: Interval;
  unit: Unit;
  title: string;
  onZoom: (from: number, to: number) => void;
}

interface Cell {
  row: number;
  column: number;
}

/** Describes a cell in words. */
export function cellText(buckets: Buckets, allBounds: readonly number[], cell: Cell, unit: Unit): string {
  const bound = buckets.bounds[cell.row] ?? 0;
  const value = buckets.cells[cell.row]?.[cell.column] ?? null;
  const total = columnTotal(buckets, cell.column);
  const at = `${formatClock(buckets.times[cell.column] ?? 0)}, ${bucketName(lowerBound(allBounds, bound), bound, unit)}`;
  if (value === null) return `${at}: not measured`;
  return `${at}: ${formatValue(value, "per_second")}${total !== null && total > 0 ? `, ${formatShare(value / total)} of that moment` : ""}`;
}

/** Returns the cell that an arrow key moves to. Without a cell it is in the newest column. */
export function moveCell(cell: Cell | undefined, key: string, rows: number, columns: number): Cell | undefined {
  const by = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [1, 0], ArrowDown: [-1, 0] }[key];
  if (!by || rows === 0 || columns === 0) return undefined;
  if (!cell) return { row: Math.floor(rows / 2), column: columns - 1 };
  const inside = (n: number, most: number): number => Math.max(0, Math.min(most - 1, n));
  return { row: inside(cell.row + (by[0] ?? 0), rows), column: inside(cell.column + (by[1] ?? 0), columns) };
}

export function Heat({ buckets, allBounds, step, interval, unit, title, onZoom }: HeatProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const session = useSession();
  const theme = useThemeName();
  const { marks, shown } = useMarks();
  const hover = useStore(shared(session).hover);
  const [cell, setCell] = useState<Cell | undefined>(undefined);
  const [size, setSize] = useState({ width: 0, height: 0 });
  const drag = useRef<number | undefined>(undefined);
  const picture: HeatPicture = { buckets, allBounds, step, interval, unit, marks, hover: hover.at };

  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const observer = new ResizeObserver(() => {
      setSize({ width: element.clientWidth, height: element.clientHeight });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
    };
  }, []);
  useEffect(() => {
    const element = canvas.current;
    const ctx = element?.getContext("2d");
    if (!element || !ctx || size.width === 0) return;
    const ratio = window.devicePixelRatio || 1;
    element.width = Math.round(size.width * ratio);
    element.height = Math.round(size.height * ratio);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawHeat(ctx, size.width, size.height, picture);
  }, [buckets, interval.from, interval.to, marks, hover.at, size, theme]);

  const choose = (next: Cell | undefined): void => {
    setCell(next);
    const at = next && buckets.times[next.column];
    shared(session).hover.set({ at, from: "heat" });
  };
  const timeAt = (x: number): number => {
    const box = heatBox(size.width, size.height);
    return interval.from + ((x - box.left) / box.width) * (interval.to - interval.from);
  };
  const there = cell && buckets.bounds[cell.row] !== undefined && buckets.times[cell.column] !== undefined ? cell : undefined;
  const near = there ? marksNear(marks, buckets.times[there.column] ?? 0, 1.5 * step) : [];
  const greatest = greatestCell(buckets);
  return (
    <>
      <canvas
        class="plot heat"
        ref={canvas}
        role="img"
        tabIndex={0}
        aria-label={`Heat map: ${title}. Arrow keys move between cells.`}
        onMouseMove={(event) => {
          choose(cellAt(event.offsetX, event.offsetY, heatBox(size.width, size.height), picture));
        }}
        onMouseLeave={() => {
          choose(undefined);
        }}
        onMouseDown={(event) => {
          drag.current = event.offsetX;
        }}
        onMouseUp={(event) => {
          const from = drag.current;
          drag.current = undefined;
          if (from === undefined || Math.abs(event.offsetX - from) < 8) return;
          const times = [timeAt(from), timeAt(event.offsetX)].sort((a, b) => a - b);
          onZoom(times[0] ?? interval.from, times[1] ?? interval.to);
        }}
        onKeyDown={(event) => {
          const next = moveCell(there, event.key, buckets.bounds.length, buckets.times.length);
          if (!next && event.key !== "Escape") return;
          event.preventDefault();
          choose(next);
        }}
      />
      <div class="legend-box">
        <div class="chart-bar">
          <p class="at" aria-live="polite">
            {there ? [cellText(buckets, allBounds, there, unit), ...(near.length > 0 ? [sayMarks(near)] : [])].join(" · ") : "Move the cursor over a cell to see its value"}
          </p>
          <MarkList marks={marks} shown={shown} />
        </div>
        <HeatScale greatest={greatest} theme={theme} />
      </div>
    </>
  );
}

/** The colour scale: nothing, and from low to the maximum. */
function HeatScale({ greatest, theme }: { greatest: number; theme: string }) {
  const paint = (element: HTMLElement | null): void => {
    if (!element) return;
    const stops = heatStops();
    element.style.background = `linear-gradient(to right, ${[0, 0.25, 0.5, 0.75, 1].map((s) => heatColour(s, stops)).join(", ")})`;
  };
  return (
    <p class="heat-scale">
      <span class="swatch nothing" /> none
      <span class="ramp" key={theme} ref={paint} aria-hidden="true" />
      <span>
        {formatValue(heatValue(0.25, greatest), "per_second")} · {formatValue(heatValue(0.5, greatest), "per_second")} · {formatValue(greatest, "per_second")} at a quarter, half and end
      </span>
    </p>
  );
}
