// SPDX-License-Identifier: Apache-2.0

// A and B on the same axes, on the time of A.
import { useState } from "preact/hooks";
import { type Frame, lastValue } from "../../lib/series";
import type { Slot } from "../../lib/colour";
import { useSession } from "../../lib/session";
import { formatClock, type Interval } from "../../lib/time";
import { formatValue, UNIT_LABEL } from "../../lib/units";
import { paint } from "../../panels/charts/Legend";
import { MarkBar } from "../../panels/charts/MarkList";
import { Plot } from "../../panels/charts/Plot";
import { type Mark, marksNear, sayMarks } from "../../panels/marks";
import type { Row } from "./shape";

/** Two fixed colours that colour-blind users can distinguish. */
const SLOTS: readonly [Slot, Slot] = [0, 1];

interface PairChartProps {
  row: Row;
  times: number[];
  interval: Interval;
  names: readonly [string, string];
  /** Text after the unit of divided values, such as "per CPU second". */
  per: string;
  /** The marks of both sides, on the time of A. */
  marks: { marks: readonly Mark[]; shown: boolean };
}

export function PairChart({ row, times, interval, names, per, marks }: PairChartProps) {
  const session = useSession();
  const [at, setAt] = useState<number | undefined>(undefined);
  const [said, setSaid] = useState<number | undefined>(undefined);
  const near = (index: number | undefined): Mark[] => {
    const step = (times[1] ?? 0) - (times[0] ?? 0);
    return index === undefined ? [] : marksNear(marks.marks, times[index] ?? 0, 1.5 * step);
  };
  const frame: Frame = { times, series: [{ name: names[0], values: row.a }, { name: names[1], values: row.b }] };
  const head = `pair-${row.id}`;
  const newest = (values: readonly (number | null)[]): string => formatValue(lastValue(values.slice(-4)), row.unit);
  return (
    <section class="panel panel-lines" aria-labelledby={head} data-panel={head} data-state="ready">
      <header class="panel-head">
        <h3 id={head}>{row.title}</h3>
        <p class="unit">{row.divided ? `${row.unit === "count" ? "" : `${UNIT_LABEL[row.unit]} `}per ${per}` : UNIT_LABEL[row.unit]}</p>
      </header>
      <Plot
        frame={frame}
        interval={interval}
        slots={new Map([[names[0], SLOTS[0]], [names[1], SLOTS[1]]])}
        unit={row.unit}
        marks={marks.marks}
        label={`Chart: ${row.title}. Newest values: ${names[0]} ${newest(row.a)}, ${names[1]} ${newest(row.b)}.`}
        onCursor={setAt}
        onKeyCursor={setSaid}
        onZoom={(from, to) => {
          session.view.update((view) => ({ ...view, fixed: { from: Math.floor(from), to: Math.ceil(to) }, live: false }));
        }}
      />
      <ul class="pair-legend">
        {names.map((name, i) => (
          <li key={i}>
            <span class="swatch" ref={paint(SLOTS[i] ?? "rest")} />
            <span class="name">{name}</span>
            <span class="value">
              {at === undefined
                ? `median ${formatValue((i === 0 ? row.spreadA : row.spreadB)?.median, row.unit)}`
                : `${formatClock(times[at] ?? 0)} ${formatValue((i === 0 ? row.a : row.b)[at], row.unit)}`}
            </span>
          </li>
        ))}
      </ul>
      <MarkBar {...marks} near={near(at)} />
      <p class="only-spoken" role="status">
        {said !== undefined && `${formatClock(times[said] ?? 0)}: ${names[0]} ${formatValue(row.a[said], row.unit)}, ${names[1]} ${formatValue(row.b[said], row.unit)} ${sayMarks(near(said))}`}
      </p>
    </section>
  );
}
