// SPDX-License-Identifier: Apache-2.0

// What threads did over time: a row for each thread, and in each bucket of time the share of each state. A span and a thread can
// be chosen, by pointer or by keys.
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ThreadTimes } from "../../api/profiles";
import { useThemeName } from "../../lib/theme";
import { formatClock } from "../../lib/time";
import { formatValue } from "../../lib/units";
import { beginPicture, fitting, useWidth } from "./canvas";
import { palette, type Palette, stateColour } from "./colours";
import { type Cell, type Chosen, fullColumn, isCounted, within } from "./part";

const ROW = 20;
/** CSS pixels for the names of threads, which are cut on a narrow screen. */
const namesOf = (width: number): number => (width < 600 ? 96 : 190);
/** A pointer that moves less, in CSS pixels, clicks. */
const CLICK = 4;

interface ThreadCanvasProps {
  times: ThreadTimes;
  chosen: Chosen | undefined;
  onChoose: (chosen: Chosen | undefined) => void;
}

export function ThreadCanvas({ times, chosen, onChoose }: ThreadCanvasProps) {
  const [box, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const [pointed, setPointed] = useState<Cell>({ row: 0, bucket: 0 });
  const [span, setSpan] = useState<Chosen | undefined>(undefined); // that is being chosen
  const drag = useRef<(Chosen & { x: number }) | undefined>(undefined);
  const theme = useThemeName();
  const colours = useMemo(palette, [theme]);
  const names = namesOf(width);
  const ticks = width < 600 ? 2 : 5; // of the axis
  const plot = Math.max(width - names, 1);
  const shown = span ?? chosen;
  const { row, bucket } = within(times, pointed);
  useLayoutEffect(() => {
    if (canvas.current && width > names) draw(canvas.current, times, width, colours, shown, { row, bucket });
  }, [times, width, colours, shown, row, bucket]);

  const place = (event: MouseEvent): Cell => {
    const { left, top } = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const x = event.clientX - left - names;
    const row = Math.min(Math.max(Math.floor((event.clientY - top) / ROW), 0), times.threads.length - 1);
    return { row, bucket: x < 0 ? -1 : Math.min(Math.floor((x / plot) * times.buckets), times.buckets - 1) };
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return; // keys of the browser
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step !== undefined) {
      const next = Math.min(Math.max(bucket + step, 0), times.buckets - 1);
      setPointed({ row, bucket: next });
      if (event.shiftKey) {
        const before = span ?? { row, begin: bucket, end: bucket + 1 };
        setSpan(next >= bucket ? { ...before, end: Math.max(before.end, next + 1) } : { ...before, begin: Math.min(before.begin, next) });
      } else setSpan(undefined);
    } else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      setPointed({ row: Math.min(Math.max(row + (event.key === "ArrowDown" ? 1 : -1), 0), times.threads.length - 1), bucket });
      setSpan(undefined);
    } else if (event.key === "Enter" || event.key === " ") {
      onChoose(span ?? { row, begin: 0, end: times.buckets });
      setSpan(undefined);
    } else if (event.key === "Escape") {
      setSpan(undefined);
      onChoose(undefined);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="threads" ref={box}>
      <ul class="legend" aria-label="States">
        {times.states.map((state, i) => (
          <li key={state}>
            <span
              class="swatch"
              ref={(element: HTMLElement | null) => {
                if (element) element.style.background = stateColour(colours, state, i);
              }}
            />
            {state}
          </li>
        ))}
      </ul>
      <div class="threads-scroll">
        <canvas
          ref={canvas}
          role="application"
          tabIndex={0}
          aria-label="Threads over time. Up and down choose a thread, left and right move in time, with Shift a span is chosen, Enter shows its code, Escape shows all."
          onKeyDown={onKeyDown}
          onPointerDown={(event) => {
            const over = place(event);
            event.currentTarget.setPointerCapture(event.pointerId);
            drag.current = { row: over.row, ...(over.bucket < 0 ? { begin: 0, end: times.buckets } : { begin: over.bucket, end: over.bucket + 1 }), x: event.clientX };
          }}
          onPointerMove={(event) => {
            const over = place(event);
            setPointed({ row: over.row, bucket: Math.max(over.bucket, 0) });
            const from = drag.current;
            if (!from || over.bucket < 0 || (!span && Math.abs(event.clientX - from.x) < CLICK)) return;
            setSpan({ row: over.row === from.row ? over.row : -1, begin: Math.min(from.begin, over.bucket), end: Math.max(from.begin, over.bucket) + 1 });
          }}
          onPointerUp={() => {
            if (drag.current) onChoose(span ?? { row: drag.current.row, begin: 0, end: times.buckets }); // a click chooses the thread
            drag.current = undefined;
            setSpan(undefined);
          }}
          onPointerCancel={() => {
            drag.current = undefined; // the browser scrolls
            setSpan(undefined);
          }}
        />
      </div>
      <div
        class="threads-axis"
        aria-hidden="true"
        ref={(element: HTMLElement | null) => {
          if (element) element.style.marginLeft = `${names}px`;
        }}
      >
        {Array.from({ length: ticks }, (_, i) => (
          <span key={i}>{formatClock(times.begin + (i / (ticks - 1)) * times.buckets * times.width)}</span>
        ))}
      </div>
      <p class="at" role="status">
        {describe(times, row, bucket)}
      </p>
    </div>
  );
}

/** A thread in words. */
export function threadName({ process, thread, pid, tid }: ThreadTimes["threads"][number]): string {
  return `${thread === "" ? process : thread} ${tid}${pid === tid || pid === "" ? "" : ` of ${process} ${pid}`}`;
}

function describe(times: ThreadTimes, row: number, bucket: number): string {
  const thread = times.threads[row];
  if (!thread) return "";
  const states = thread.pieces.filter(([b]) => b === bucket).map(([, state, value]) => `${times.states[state] ?? ""} ${isCounted(times) ? formatValue(value, "count") : formatValue(value / 1e9, "seconds")}`);
  const when = formatClock(times.begin + bucket * times.width);
  return `${threadName(thread)}, ${when} for ${formatValue(times.width, "seconds")}: ${states.length === 0 ? "no sample" : states.join(", ")}`;
}

function draw(canvas: HTMLCanvasElement, times: ThreadTimes, width: number, colours: Palette, chosen: Chosen | undefined, at: Cell): void {
  const height = times.threads.length * ROW;
  const context = beginPicture(canvas, width, height);
  if (!context) return;
  const names = namesOf(width);
  const each = (width - names) / times.buckets;
  const all = fullColumn(times);
  let rectangles = 0;
  times.threads.forEach((thread, row) => {
    const top = row * ROW;
    context.globalAlpha = 1;
    context.fillStyle = row === at.row ? colours.accent : colours.text;
    context.fillText(fitting(threadName(thread), names - 8), 2, top + ROW / 2);
    context.globalAlpha = 0.12;
    context.fillStyle = colours.rest;
    context.fillRect(names, top + 1, width - names, ROW - 2);
    context.globalAlpha = 1;
    let last = -1;
    let used = 0;
    for (const [bucket, state, value] of thread.pieces) {
      if (bucket !== last) used = 0;
      last = bucket;
      const part = Math.min(value / all, 1 - used);
      if (part <= 0) continue;
      const high = Math.max(part * (ROW - 2), 1);
      context.fillStyle = stateColour(colours, times.states[state] ?? "", state);
      context.fillRect(names + bucket * each, top + ROW - 1 - used * (ROW - 2) - high, Math.max(each - (each > 4 ? 1 : 0), 1), high);
      used += part;
      rectangles++;
    }
  });
  if (chosen) {
    const [top, high] = chosen.row < 0 ? [0, height] : [chosen.row * ROW, ROW];
    context.strokeStyle = colours.accent;
    context.lineWidth = 2;
    context.strokeRect(names + chosen.begin * each + 1, top + 1, Math.max((chosen.end - chosen.begin) * each - 2, 2), high - 2);
  }
  context.strokeStyle = colours.text;
  context.lineWidth = 1;
  context.strokeRect(names + at.bucket * each + 0.5, at.row * ROW + 0.5, Math.max(each - 1, 2), ROW - 1);
  canvas.dataset["rectangles"] = String(rectangles);
}
