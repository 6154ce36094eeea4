// SPDX-License-Identifier: Apache-2.0

// The result of one query: a chart over the time range, or a table at its end.
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { ApiError } from "../../api/errors";
import { assignSlots } from "../../lib/colour";
import { inferUnit } from "../../lib/infer-unit";
import type { ExploreShow } from "../../lib/page-params";
import { fold, type Frame, lastValue, toFrame } from "../../lib/series";
import { useSession } from "../../lib/session";
import { useStore } from "../../lib/store";
import { alignToGrid, formatMoment, formatSpan, type Interval, stepFor } from "../../lib/time";
import { formatValue, isUnit, type Unit, UNIT_LABEL } from "../../lib/units";
import { Legend } from "../../panels/charts/Legend";
import { MarkBar } from "../../panels/charts/MarkList";
import { Plot } from "../../panels/charts/Plot";
import { endAt } from "../../panels/frames";
import { marksNear } from "../../panels/marks";
import { type Loaded, useRequest, useShown } from "../../panels/use-data";
import { useMarks } from "../../panels/use-marks";
import { usePanel } from "../../panels/use-panel";
import { nameSeries, type SampleTable, tableOf } from "./series";

const POINTS = 240;
/** Maximum number of series in a chart. More cannot be distinguished. */
const MOST_DRAWN = 20;
/** Seconds between two updates of live data. */
const EVERY_SECONDS = 5;

interface Drawn {
  frame: Frame;
  series: number;
  step: number;
}

interface ResultProps {
  index: number;
  expr: string;
  show: ExploreShow;
  /** Empty for the inferred unit. */
  chosenUnit: Unit | "";
  /** Absent where the unit cannot be chosen. */
  onUnit?: (unit: Unit | "") => void;
  onError?: (error: ApiError | undefined) => void;
  /** The title, where it is not the query. */
  title?: string;
  /** Links and buttons of the panel. */
  tools?: ComponentChildren;
}

export function Result({ index, expr, show, chosenUnit, onUnit, onError, title, tools }: ResultProps) {
  const { interval } = useShown();
  const loaded = useAnswer(expr, show);
  useEffect(() => {
    onError?.(loaded.stale ? undefined : loaded.error);
  }, [loaded.error, loaded.stale]);
  const head = `result-${index}`;
  const ownUnit = useMemo(() => inferUnit(expr), [expr]);
  const unit = chosenUnit === "" ? (ownUnit ?? "count") : chosenUnit;
  const { value, error } = loaded;
  const empty = value !== undefined && ("frame" in value ? value.series === 0 : value.rows.length === 0);
  const state = value === undefined ? (error ? "error" : "loading") : empty ? "empty" : "ready";
  return (
    <section class="panel panel-lines" aria-labelledby={head} aria-busy={state === "loading"} data-panel={head} data-state={state} data-stale={loaded.stale ? "" : undefined}>
      <header class="panel-head">
        <h3 id={head}>
          {title ?? <code>{expr}</code>}
        </h3>
        <p class="unit">{value && noteOf(value, interval)}</p>
        {onUnit && <UnitChoice own={ownUnit} chosen={chosenUnit} onChoose={onUnit} label={`Unit of query ${index + 1}`} />}
        {tools}
      </header>
      {error && value && <p class="panel-notice">{error.message} The findings shown are older.</p>}
      {state === "loading" && <p class="panel-message">Loading data…</p>}
      {state === "error" && <p class="panel-message">{error?.kind === "query" && onError ? "The server refused the query. The reason is shown below the query." : error?.message}</p>}
      {state === "empty" && (
        <div class="panel-message">
          <p>No series: the query is valid, but nothing matches it in this time range.</p>
          <p class="advice">Check the spelling of names and values, or choose a longer time range.</p>
        </div>
      )}
      {state === "ready" && value && ("frame" in value ? <Chart id={head} expr={expr} unit={unit} frame={value.frame} interval={interval} /> : <Table expr={expr} unit={unit} table={value} />)}
    </section>
  );
}

function noteOf(value: Drawn | SampleTable, { to }: Interval): string {
  if (!("frame" in value)) return `${value.rows.length + value.leftOut} series at ${formatMoment(to)}`;
  const drawn = value.series > MOST_DRAWN + 1 ? `the ${MOST_DRAWN} largest of ${value.series} series` : `${value.series} series`;
  return `${drawn} · ${formatSpan(value.step)} a point`;
}

function useAnswer(expr: string, show: ExploreShow): Loaded<Drawn | SampleTable> {
  const session = useSession();
  const { interval, scrapeInterval } = useShown();
  const fixed = useStore(session.view).fixed;
  const span = fixed ? `${fixed.from}-${fixed.to}` : String(interval.to - interval.from);
  const step = stepFor(interval.to - interval.from, scrapeInterval, POINTS);
  return useRequest(
    async ({ client }, signal): Promise<Drawn | SampleTable> => {
      if (show === "table") return tableOf(await client.evaluate(expr, interval.to, signal));
      const { from, to } = alignToGrid(interval, step);
      const answer = await client.range(expr, from, to, step, signal);
      const names = nameSeries(answer.map((s) => s.metric), expr);
      const whole = toFrame(answer.map((s, i) => ({ name: names[i] ?? "", points: s.values })), from, to, step);
      const frame = fold(endAt(whole, interval.to, step, scrapeInterval), MOST_DRAWN, false).frame;
      return { frame, series: answer.length, step };
    },
    `${show} ${step} ${span} ${expr}`,
    String(Math.floor(interval.to / EVERY_SECONDS)),
    true,
  );
}

interface UnitChoiceProps {
  own: Unit | undefined;
  chosen: Unit | "";
  onChoose: (unit: Unit | "") => void;
  label: string;
}

const UNITS = Object.keys(UNIT_LABEL).filter(isUnit);
const named = (unit: Unit): string => (unit === "count" ? "plain number" : UNIT_LABEL[unit]);

/** A choice between the inferred unit and others. */
function UnitChoice({ own, chosen, onChoose, label }: UnitChoiceProps) {
  return (
    <select
      class="unit-choice"
      aria-label={label}
      title={own === undefined ? "The unit cannot be derived from the query" : "Inferred from the names in the query"}
      value={chosen}
      onChange={(event) => {
        const { value } = event.currentTarget;
        onChoose(isUnit(value) ? value : "");
      }}
    >
      <option value="">{own === undefined ? "plain number" : `${named(own)}, inferred`}</option>
      {UNITS.map((unit) => (
        <option key={unit} value={unit}>
          {named(unit)}
        </option>
      ))}
    </select>
  );
}

interface ChartProps {
  id: string;
  expr: string;
  unit: Unit;
  frame: Frame;
  interval: Interval;
}

function Chart({ id, expr, unit, frame, interval }: ChartProps) {
  const session = useSession();
  const { state, set } = usePanel(id);
  const [cursor, setCursor] = useState<number | undefined>(undefined);
  const { marks, shown: marksShown } = useMarks();
  const names = frame.series.map((s) => s.name);
  const slots = useMemo(() => assignSlots(names), [names.join("\n")]);
  const alone = names.find((name) => name === state.only);
  const shown = alone === undefined ? frame : { times: frame.times, series: frame.series.filter((s) => s.name === alone) };
  const values = frame.series.map((s) => (cursor === undefined ? lastValue(s.values.slice(-4)) : (s.values[cursor] ?? null)));
  const near = cursor === undefined ? [] : marksNear(marks, frame.times[cursor] ?? 0, 1.5 * ((frame.times[1] ?? 0) - (frame.times[0] ?? 0)));
  const spoken = frame.series.slice(0, 5).map((s, i) => `${s.name} ${formatValue(values[i], unit)}`);
  return (
    <>
      <Plot
        frame={shown}
        interval={interval}
        slots={slots}
        unit={unit}
        marks={marks}
        label={`Chart: ${expr}. Newest values: ${spoken.join(", ")}.`}
        onCursor={setCursor}
        onZoom={(from, to) => {
          session.view.update((view) => ({ ...view, fixed: { from: Math.floor(from), to: Math.ceil(to) }, live: false }));
        }}
      />
      <div class="legend-box">
        <MarkBar marks={marks} shown={marksShown} near={near} />
        <Legend names={names} values={values} slots={slots} unit={unit} alone={alone} onAlone={(only) => { set({ only }); }} />
      </div>
    </>
  );
}

function Table({ expr, unit, table }: { expr: string; unit: Unit; table: SampleTable }) {
  return (
    <>
      <div class="table-scroll" tabIndex={0} role="group" aria-label={`${expr}, table`}>
        <table>
          <thead>
            <tr>
              {table.labels.map((label) => (
                <th key={label} scope="col">
                  {label === "__name__" ? "metric" : label}
                </th>
              ))}
              <th scope="col" class="numeric">
                Value
              </th>
            </tr>
          </thead>
          <tbody>
            {table.rows.map((row) => (
              <tr key={row.labels.join("\u0000")}>
                {row.labels.map((text, i) => (
                  <td key={i} class="text">
                    {text}
                  </td>
                ))}
                <td class="numeric" title={String(row.value)}>
                  {Number.isFinite(row.value) ? formatValue(row.value, unit) : String(row.value)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {table.leftOut > 0 && <p class="page-note">{table.leftOut} smaller ones are left out.</p>}
    </>
  );
}
