// SPDX-License-Identifier: Apache-2.0

// The kinds "lines" and "stacked": series over time.
import { useMemo, useRef, useState } from "preact/hooks";
import { assignSlots, type Slot } from "../lib/colour";
import { fillTemplate } from "../lib/promql";
import { type Errors, type Folded, fold, type Frame, lastValue, splitErrors } from "../lib/series";
import { useSession } from "../lib/session";
import { formatClock, formatSpan } from "../lib/time";
import { formatValue, isAdditive, type Unit } from "../lib/units";
import { CHART_POINTS, chartQueries, ERROR_PREFIX, estimateNote } from "./panel-queries";
import { Legend } from "./charts/Legend";
import { MarkList } from "./charts/MarkList";
import { Plot } from "./charts/Plot";
import { Panel, panelState } from "./Panel";
import { type Mark, marksNear, sayMarks } from "./marks";
import type { ChartDef, Threshold } from "./types";
import { useFrame, useNear, useShown } from "./use-data";
import { useMarks } from "./use-marks";
import { usePanel } from "./use-panel";

const MOST_SERIES = 24;

export function ChartPanel({ def }: { def: ChartDef }) {
  const [root, near] = useNear();
  const session = useSession();
  const { interval, ...filling } = useShown();
  const queries = useMemo(() => chartQueries(def), [def]);
  const loaded = useFrame(queries, CHART_POINTS, near, true);
  const drawn = useMemo(() => {
    if (!loaded.value) return undefined;
    const { frame, errors } = splitErrors(loaded.value.frame, ERROR_PREFIX);
    return { folded: shape(def, frame), errors };
  }, [loaded.value, def]);
  const step = loaded.value?.step ?? filling.scrapeInterval;
  return (
    <Panel
      def={def}
      state={panelState(loaded, drawn?.folded.frame.series.length === 0)}
      error={loaded.error}
      stale={loaded.stale}
      note={estimateNote(drawn?.errors, def.unit)}
      exprs={queries.map((q) => fillTemplate(q.expr, { ...filling, step }))}
      root={root}
    >
      {drawn && (
        <Chart
          folded={drawn.folded}
          errors={drawn.errors}
          unit={def.unit}
          stacked={def.kind === "stacked"}
          thresholds={def.thresholds ?? NONE}
          step={step}
          title={def.title}
          id={def.id}
          interval={interval}
          onZoom={(from, to) => {
            session.view.update((view) => ({ ...view, fixed: { from: Math.floor(from), to: Math.ceil(to) }, live: false }));
          }}
        />
      )}
    </Panel>
  );
}

const NONE: readonly Threshold[] = [];

/** Returns the series in their order, folded. */
function shape(def: ChartDef, frame: Frame): Folded {
  if (def.ordered) return { frame, count: 0 };
  return fold(frame, def.top ?? MOST_SERIES, isAdditive(def.unit));
}

interface ChartProps {
  folded: Folded;
  errors: Errors;
  unit: Unit;
  stacked: boolean;
  thresholds: readonly Threshold[];
  /** Seconds between two points. */
  step: number;
  title: string;
  id: string;
  interval: { from: number; to: number };
  onZoom: (from: number, to: number) => void;
}

function Chart({ folded, errors, unit, stacked, thresholds, step, title, id, interval, onZoom }: ChartProps) {
  const [cursor, setCursor] = useState<number | undefined>(undefined);
  const [said, setSaid] = useState("");
  const { state, set } = usePanel(id);
  const log = state.scale === "log";
  const { marks, shown: marksShown } = useMarks();
  const all = folded.frame;
  const names = all.series.map((s) => s.name);
  const alone = names.find((name) => name === state.only);
  const slots = useSlots(names);
  const shown: Frame = useMemo(
    () => (alone === undefined ? all : { times: all.times, series: all.series.filter((s) => s.name === alone) }),
    [all, alone],
  );
  const nearTo = (index: number | undefined): Mark[] => (index === undefined ? [] : marksNear(marks, all.times[index] ?? 0, 1.5 * step));
  const near = nearTo(cursor);
  const at = (values: readonly (number | null)[]): number | null => (cursor === undefined ? lastAt(values) : (values[cursor] ?? null));
  const values = all.series.map((s) => at(s.values));
  const halves = all.series.map((s) => at(errors.get(s.name) ?? []));
  return (
    <>
      <Plot
        frame={shown}
        errors={errors}
        interval={interval}
        slots={slots}
        unit={unit}
        stacked={stacked}
        log={log && !stacked}
        thresholds={thresholds}
        marks={marks}
        label={spoken(title, all, unit)}
        onCursor={setCursor}
        onKeyCursor={(index) => {
          setSaid(index === undefined ? "" : spokenAt(shown, index, unit, nearTo(index)));
        }}
        onZoom={onZoom}
      />
      <div class="legend-box">
        <div class="chart-bar">
          <p class="at">
            {cursor === undefined ? "Newest" : `At ${formatClock(all.times[cursor] ?? 0)}`} · {formatSpan(step)} a point
            {folded.count > 0 && !isAdditive(unit) && ` · ${folded.count} smallest left out`}
            {near.length > 0 && ` · ${sayMarks(near)}`}
          </p>
          {!stacked && (
            <button
              type="button"
              class="chip"
              aria-pressed={log}
              title={log ? "Logarithmic scale; zero is drawn at the bottom" : "Show small values beside large ones"}
              onClick={() => {
                set({ scale: log ? undefined : "log" });
              }}
            >
              Log scale
            </button>
          )}
          <MarkList marks={marks} shown={marksShown} />
        </div>
        <p class="only-spoken" aria-live="polite">
          {said}
        </p>
        <Legend names={names} values={values} errors={halves} slots={slots} unit={unit} alone={alone} onAlone={(only) => { set({ only }); }} />
      </div>
    </>
  );
}

/** Describes the greatest values at a point and the marks near it, for screen readers. */
function spokenAt(frame: Frame, index: number, unit: Unit, near: readonly Mark[]): string {
  const parts = frame.series.slice(0, 8).map((s) => `${s.name} ${formatValue(s.values[index], unit)}`);
  return `${formatClock(frame.times[index] ?? 0)}: ${parts.join(", ")}${near.length > 0 ? `. Marks: ${sayMarks(near)}` : ""}`;
}

/** Returns the colours of a chart. They stay while its series come, go and change order. */
function useSlots(names: readonly string[]): ReadonlyMap<string, Slot> {
  const before = useRef<ReadonlyMap<string, Slot>>(new Map());
  const slots = useMemo(() => assignSlots(names, before.current), [names.join("\n")]);
  before.current = slots;
  return slots;
}

/** Returns the newest value, or null if it is not among the newest points. */
function lastAt(values: readonly (number | null)[]): number | null {
  return lastValue(values.slice(-4));
}

function spoken(title: string, frame: Frame, unit: Unit): string {
  const parts = frame.series.slice(0, 5).map((s) => `${s.name} ${formatValue(lastAt(s.values), unit)}`);
  return `Chart: ${title}. Newest values: ${parts.join(", ")}. Use the arrow keys to read older values.`;
}
