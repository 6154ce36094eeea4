// SPDX-License-Identifier: Apache-2.0

// A flame graph on a canvas, with the whole on top. One frame at a time has the focus of the keyboard. What is drawn is bounded
// by the size of the picture (tree.ts).
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { useThemeName } from "../../lib/theme";
import { beginPicture, fitting, useWidth } from "./canvas";
import { changeStep, libraryColour, palette, type Palette } from "./colours";
import { moved, nodeAt, type Tree, visible, WHOLE, type Window } from "./tree";

const ROW = 18;
const MOST_ROWS = 26;
/** CSS pixels of a frame with a name. */
const LEAST_NAME = 28;
const ZOOM = 1.25;

interface FlameCanvasProps {
  tree: Tree;
  title: string;
  /** Describes a frame in words. */
  say: (node: number) => string;
  /** Which functions are marked. */
  marked: Uint8Array | undefined;
  /** The shares of both profiles, if frames have the colour of their change. */
  change?: { before: readonly number[]; after: readonly number[] } | undefined;
  /** Called with a function whose callers and callees are wanted. */
  onFunction?: (frame: number) => void;
}

interface Place {
  from: number;
  to: number;
  top: number;
}

/** What is shown of a tree. */
interface State {
  tree: Tree;
  place: Place;
  focus: number;
  hover: number;
}

export function FlameCanvas({ tree, title, say, marked, change, onFunction }: FlameCanvasProps) {
  const whole = tree.total[WHOLE] ?? 0;
  const all = useMemo((): State => ({ tree, place: { from: 0, to: whole, top: 0 }, focus: WHOLE, hover: -1 }), [tree]);
  const [state, setState] = useState(all);
  const { place, focus, hover } = state.tree === tree ? state : all;
  const set = (changed: Partial<State>): void => {
    setState((before) => ({ ...(before.tree === tree ? before : all), ...changed }));
  };
  const [box, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const drag = useRef<{ x: number; y: number; place: Place; moved: boolean } | undefined>(undefined);
  const theme = useThemeName();
  const colours = useMemo(palette, [theme]);
  const rows = Math.min(tree.rows.length, MOST_ROWS);
  const window: Window = { ...place, rows, width };

  // Before the browser paints, so that a picture belongs to the frame of its event.
  useLayoutEffect(() => {
    if (canvas.current && width > 0 && place.to > place.from) draw(canvas.current, tree, window, colours, { marked, change, focus });
  }, [tree, place, focus, width, colours, marked, change]);

  const inside = (next: Place): Place => {
    const span = Math.min(Math.max(next.to - next.from, whole / 1e9), whole);
    const from = Math.min(Math.max(next.from, 0), whole - span);
    return { from, to: from + span, top: Math.min(Math.max(Math.round(next.top), 0), Math.max(0, tree.rows.length - rows)) };
  };
  const go = (next: Place): void => {
    set({ place: inside(next) });
  };
  const zoom = (node: number): void => {
    const start = tree.start[node] ?? 0;
    set({ focus: node });
    go({ from: start, to: start + (tree.total[node] ?? 0), top: Math.min(place.top, Math.max(0, (tree.depth[node] ?? 0) - 3)) });
  };
  const reach = (node: number): void => {
    set({ focus: node });
    const [start, end, depth] = [tree.start[node] ?? 0, (tree.start[node] ?? 0) + (tree.total[node] ?? 0), tree.depth[node] ?? 0];
    const hidden = end <= place.from || start >= place.to;
    const top = depth < place.top ? depth : depth >= place.top + rows ? depth - rows + 1 : place.top;
    go(hidden ? { from: start, to: end, top } : { ...place, top });
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return; // keys of the browser
    const span = place.to - place.from;
    const middle = (tree.start[focus] ?? 0) + (tree.total[focus] ?? 0) / 2;
    if (event.key.startsWith("Arrow")) reach(moved(tree, focus, event.key));
    else if (event.key === "Enter" || event.key === " ") zoom(focus);
    else if (event.key === "Escape" || event.key === "Home") {
      set({ place: all.place, focus: WHOLE });
    } else if (event.key === "+" || event.key === "-") {
      const next = event.key === "+" ? span / ZOOM : span * ZOOM;
      go({ ...place, from: middle - next / 2, to: middle + next / 2 });
    } else if (event.key === "PageDown" || event.key === "PageUp") go({ ...place, top: place.top + (event.key === "PageDown" ? rows - 1 : 1 - rows) });
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const where = (event: MouseEvent): number => {
    const { left, top } = (event.currentTarget as HTMLElement).getBoundingClientRect();
    return nodeAt(tree, window, event.clientX - left, Math.floor((event.clientY - top) / ROW));
  };
  const shown = hover >= 0 ? hover : focus;
  return (
    <div class="flame" ref={box}>
      <canvas
        ref={canvas}
        role="application"
        tabIndex={0}
        aria-label={`${title}. Arrow keys move, Enter zooms into a frame, plus and minus zoom, Escape shows all.`}
        onKeyDown={onKeyDown}
        onPointerDown={(event) => {
          drag.current = { x: event.clientX, y: event.clientY, place, moved: false };
          event.currentTarget.setPointerCapture(event.pointerId);
        }}
        onPointerMove={(event) => {
          const from = drag.current;
          if (!from) {
            const over = where(event);
            if (over !== hover) set({ hover: over });
            return;
          }
          from.moved ||= Math.abs(event.clientX - from.x) + Math.abs(event.clientY - from.y) > 4;
          if (!from.moved) return;
          const by = ((from.x - event.clientX) / width) * (from.place.to - from.place.from);
          go({ from: from.place.from + by, to: from.place.to + by, top: from.place.top + (from.y - event.clientY) / ROW });
        }}
        onPointerUp={(event) => {
          const clicked = drag.current?.moved === false ? where(event) : -1;
          drag.current = undefined;
          if (clicked >= 0) zoom(clicked);
        }}
        onPointerCancel={() => {
          drag.current = undefined; // the browser scrolls
        }}
        onPointerLeave={() => {
          set({ hover: -1 });
        }}
        onWheel={(event) => {
          if (!event.ctrlKey) return; // the page scrolls
          event.preventDefault();
          const { left } = event.currentTarget.getBoundingClientRect();
          const share = (event.clientX - left) / width;
          const span = (place.to - place.from) * (event.deltaY > 0 ? ZOOM : 1 / ZOOM);
          const at = place.from + share * (place.to - place.from);
          go({ ...place, from: at - share * span, to: at + (1 - share) * span });
        }}
      />
      <p class="at" role="status">
        {say(shown)}
        {onFunction && focus > WHOLE && (
          <>
            {" "}
            <button
              type="button"
              class="plain-button"
              onClick={() => {
                onFunction(tree.frame[focus] ?? 0);
              }}
            >
              Callers and callees
            </button>
          </>
        )}
      </p>
    </div>
  );
}

interface Look {
  marked: Uint8Array | undefined;
  change: FlameCanvasProps["change"];
  focus: number;
}

function draw(canvas: HTMLCanvasElement, tree: Tree, window: Window, colours: Palette, { marked, change, focus }: Look): void {
  const context = beginPicture(canvas, window.width, window.rows * ROW);
  if (!context) return;
  let rectangles = 0;
  const colourOf = (node: number): [string, number] => {
    if (node < 0) return [colours.rest, 0.35];
    if (node === WHOLE) return [colours.rest, 0.25];
    if (marked?.[tree.frame[node] ?? 0] === 1) return [colours.hit, 0.5];
    const faint = marked ? 0.3 : 1;
    if (!change) return [libraryColour(colours, tree.table[tree.frame[node] ?? 0]), 0.5 * faint];
    const step = changeStep(change.before[node - 1] ?? 0, change.after[node - 1] ?? 0);
    return step === 0 ? [colours.rest, 0.2 * faint] : [step > 0 ? colours.more : colours.less, [0, 0.25, 0.5, 0.8][Math.abs(step)] ?? 0.8];
  };
  const steps = visible(tree, window, (node, left, width, row) => {
    rectangles++;
    const [colour, alpha] = colourOf(node);
    const gap = width > 3 ? 1 : 0;
    context.globalAlpha = alpha;
    context.fillStyle = colour;
    context.fillRect(left, row * ROW, width - gap, ROW - 1);
    context.globalAlpha = 1;
    if (node < 0) return;
    if (node === focus) {
      context.strokeStyle = colours.accent;
      context.lineWidth = 2;
      context.strokeRect(left + 1, row * ROW + 1, Math.max(width - 2 - gap, 1), ROW - 3);
    }
    if (width < LEAST_NAME) return;
    const name = node === WHOLE ? "all" : (tree.table[tree.frame[node] ?? 0]?.name ?? "");
    context.fillStyle = colours.text;
    context.fillText(fitting(name, width - 6), left + 3, row * ROW + ROW / 2);
  });
  // For tests: what the last picture took.
  canvas.dataset["rectangles"] = String(rectangles);
  canvas.dataset["steps"] = String(steps);
  canvas.dataset["pictures"] = String(Number(canvas.dataset["pictures"] ?? 0) + 1);
}
