// SPDX-License-Identifier: Apache-2.0

// The marks of a chart as text, and the switch that hides them on all charts.
import { useSession } from "../../lib/session";
import { formatClock } from "../../lib/time";
import type { Mark } from "../marks";
import { MOST_MARKS, sayMarks } from "../marks";
import { shared, showMarks } from "../use-marks";
import { letter } from "./marks-draw";

const WHAT = "alerts, findings, deployments, restarts and starts";

interface MarkListProps {
  marks: readonly Mark[];
  shown: boolean;
}

export function MarkList({ marks, shown }: MarkListProps) {
  const session = useSession();
  const point = (at: number | undefined) => () => {
    shared(session).hover.set({ at, from: "heat" }); // "heat" makes all charts follow
  };
  if (!shown) {
    return (
      <button
        type="button"
        class="chip"
        title={`Show ${WHAT} on all charts`}
        onClick={() => {
          showMarks(session, true);
        }}
      >
        Show marks
      </button>
    );
  }
  if (marks.length === 0) return null;
  const count = `${marks.length === MOST_MARKS ? "newest " : ""}${marks.length} ${marks.length === 1 ? "mark" : "marks"}`;
  return (
    <details class="marks">
      <summary class="chip" title={`Of ${WHAT}`}>
        {count}
      </summary>
      <ul>
        {marks.map((mark) => (
          <li key={`${mark.at} ${mark.text}`}>
            <button
              type="button"
              class="mark-line"
              title="Show it on all charts"
              onClick={point(mark.at)}
              onFocus={point(mark.at)}
              onBlur={point(undefined)}
              onMouseEnter={point(mark.at)}
              onMouseLeave={point(undefined)}
            >
              <span class={`flag ${mark.kind}`} aria-hidden="true">
                {letter(mark.kind)}
              </span>
              {formatClock(mark.at)} {mark.text}
            </button>
          </li>
        ))}
        <li>
          <button
            type="button"
            class="plain-button"
            onClick={() => {
              showMarks(session, false);
            }}
          >
            Hide marks on all charts
          </button>
        </li>
      </ul>
    </details>
  );
}

/** A line below a chart without a legend: the marks near its cursor, and the list of all marks. */
export function MarkBar({ marks, shown, near }: MarkListProps & { near: readonly Mark[] }) {
  if (shown && marks.length === 0) return null;
  return (
    <div class="chart-bar">
      <p class="at">{sayMarks(near)}</p>
      <MarkList marks={marks} shown={shown} />
    </div>
  );
}
