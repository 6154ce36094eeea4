// SPDX-License-Identifier: Apache-2.0

// The marks of a chart in words, and the switch that hides them on all charts.
import { useSession } from "../../lib/session";
import { formatClock } from "../../lib/time";
import type { Mark } from "../marks";
import { MOST_MARKS } from "../marks";
import { showMarks } from "../use-marks";

export function MarkList({ marks, shown }: { marks: readonly Mark[]; shown: boolean }) {
  const session = useSession();
  if (!shown) {
    return (
      <button
        type="button"
        class="chip"
        title="Show findings, alerts and restarts on all charts"
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
      <summary class="chip" title="Findings, alerts and restarts">
        {count}
      </summary>
      <ul>
        {marks.map((mark) => (
          <li key={`${mark.at} ${mark.text}`}>
            <span class={`flag ${mark.kind}`} aria-hidden="true">
              {mark.kind.charAt(0).toUpperCase()}
            </span>
            {formatClock(mark.at)} {mark.text}
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
