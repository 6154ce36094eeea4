// SPDX-License-Identifier: Apache-2.0

// A uPlot in a component. It is created again when the shape or the theme changes. Otherwise it receives new data. It
// is as wide as its parent.
import { useEffect, useRef, useState } from "preact/hooks";
import type uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Slot } from "../../lib/colour";
import { bandOf, type Errors, type Frame, stack } from "../../lib/series";
import type { Interval } from "../../lib/time";
import { useThemeName } from "../../lib/theme";
import type { Unit } from "../../lib/units";
import { useSession } from "../../lib/session";
import type { Mark } from "../marks";
import type { Threshold } from "../types";
import { shared } from "../use-marks";
import { useLibrary } from "./library";
import { type ChartEvents, chartOptions, logRange, raiseToFoot } from "./uplot";

interface PlotProps {
  frame: Frame;
  /** Errors of the values, drawn as bands. A stack has none. */
  errors?: Errors;
  interval: Interval;
  slots: ReadonlyMap<string, Slot>;
  unit: Unit;
  stacked?: boolean;
  log?: boolean;
  thresholds?: readonly Threshold[];
  marks?: readonly Mark[];
  /** Text for screen readers. */
  label: string;
  onCursor?: (index: number | undefined) => void;
  /** Called when a key moves the cursor, to announce the point. Mouse moves are not announced. */
  onKeyCursor?: (index: number | undefined) => void;
  onZoom: (from: number, to: number) => void;
}

/**
 * Returns the columns of the plot. A stack is drawn from the top down, each band over the one above it. Fills
 * therefore need no bands.
 */
function columns(frame: Frame, stacked: boolean, log: boolean): uPlot.AlignedData {
  const values = stacked ? stack(frame).reverse() : frame.series.map((s) => s.values);
  if (!log) return [frame.times, ...values];
  const [foot] = logRange(values);
  return [frame.times, ...values.map((v) => raiseToFoot(v, foot))];
}

/** Returns the index that an arrow key moves the cursor to. Without a cursor it is the newest point. */
export function moveCursor(at: number | undefined, key: string, points: number): number | undefined {
  if (points === 0) return undefined;
  const last = points - 1;
  switch (key) {
    case "Home":
      return 0;
    case "End":
      return last;
    case "ArrowLeft":
      return at === undefined ? last : Math.max(0, at - 1);
    case "ArrowRight":
      return at === undefined ? last : Math.min(last, at + 1);
    default:
      return undefined;
  }
}

const NONE: readonly never[] = [];
const NO_ERRORS: Errors = new Map();

export function Plot({ stacked = false, log = false, thresholds = NONE, marks = NONE, errors = NO_ERRORS, ...rest }: PlotProps) {
  const [dragging, setDragging] = useDragging();
  const frozen = useRef({ ...rest, stacked, log, thresholds, marks, errors });
  if (!dragging) frozen.current = { ...rest, stacked, log, thresholds, marks, errors };
  const props = frozen.current;
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const latest = useRef(props);
  latest.current = props;
  const theme = useThemeName();
  const Library = useLibrary();
  const { hover } = shared(useSession());
  const names = props.frame.series.map((s) => s.name);
  const pointed = useRef(false); // whether this code moves the cursor, not the user
  const point = (at: number | undefined): void => {
    if (!plot.current) return;
    const left = at === undefined ? -10 : plot.current.valToPos(at, "x");
    pointed.current = true;
    plot.current.setCursor({ left, top: at === undefined ? -10 : 1 }, true);
    pointed.current = false;
  };
  // uPlot sets its scales in a microtask, and a position needs them.
  const keepMoment = (): void => {
    queueMicrotask(() => {
      point(hover.get().at);
    });
  };
  const shapeKey = JSON.stringify([names, [...props.slots], props.unit, props.stacked, props.log, theme]);

  useEffect(() => {
    const element = box.current;
    if (!element || !Library) return;
    const events: ChartEvents = {
      onCursor: (index, own) => {
        latest.current.onCursor?.(index);
        if (own && !pointed.current) hover.set({ at: index === undefined ? undefined : latest.current.frame.times[index], from: "plot" });
      },
      marks: () => latest.current.marks,
      bands: () => (latest.current.stacked ? [] : latest.current.frame.series.map((s) => bandOf(s, latest.current.errors))),
      onZoom: (from, to) => {
        latest.current.onZoom(from, to);
      },
      interval: () => latest.current.interval,
    };
    const { slots, unit, stacked, log, thresholds, frame } = latest.current;
    const drawn = frame.series.map((s) => s.name);
    const shape = { names: stacked ? drawn.reverse() : drawn, slots, unit, stacked, log, thresholds };
    const made = new Library(
      chartOptions(shape, events, element.clientWidth, element.clientHeight),
      columns(frame, stacked, log),
      element,
    );
    plot.current = made;
    const observer = new ResizeObserver(() => {
      made.setSize({ width: element.clientWidth, height: element.clientHeight });
    });
    observer.observe(element);
    const unwatch = hover.watch(({ at, from }) => {
      if (from === "heat") point(at);
    });
    if (hover.get().at !== undefined) keepMoment(); // a new chart has no cursor
    return () => {
      unwatch();
      observer.disconnect();
      made.destroy();
      plot.current = undefined;
    };
  }, [shapeKey, Library]);

  useEffect(() => {
    plot.current?.setData(columns(props.frame, props.stacked, props.log));
    // uPlot leaves the cursor at its pixel. A moment that a key or a heat map chose stays the same while time moves on.
    if (hover.get().from === "heat" && hover.get().at !== undefined) keepMoment();
  }, [props.frame, props.interval.from, props.interval.to, props.stacked, props.log]);
  useEffect(() => {
    plot.current?.redraw(false);
  }, [props.marks]);

  const onKeyDown = (event: KeyboardEvent): void => {
    const drawn = plot.current;
    const { times } = props.frame;
    if (event.key === "Escape" && typeof drawn?.cursor.idx !== "number") return; // leaves the key to outer elements
    const index = event.key === "Escape" ? undefined : moveCursor(drawn?.cursor.idx ?? undefined, event.key, times.length);
    if (!drawn || (index === undefined && event.key !== "Escape")) return;
    event.preventDefault();
    const at = index === undefined ? undefined : times[index];
    // "heat" makes all charts follow, including this one.
    hover.set({ at, from: "heat" });
    props.onKeyCursor?.(index);
  };

  return <div class="plot" ref={box} role="img" tabIndex={0} aria-label={props.label} onKeyDown={onKeyDown} onMouseDown={setDragging} />;
}

/** Reports whether the user drags on the chart. A redraw would disturb the selection. */
function useDragging(): [boolean, () => void] {
  const [dragging, setDragging] = useState(false);
  useEffect(() => {
    if (!dragging) return;
    const release = (): void => {
      setDragging(false);
    };
    window.addEventListener("mouseup", release);
    return () => {
      window.removeEventListener("mouseup", release);
    };
  }, [dragging]);
  const hold = (): void => {
    setDragging(true);
  };
  return [dragging, hold];
}
