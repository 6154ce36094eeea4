// SPDX-License-Identifier: Apache-2.0

// Chooses the time range: relative to now, or from one moment to another.
import { useState } from "preact/hooks";
import { shownInterval, useSession } from "../../lib/session";
import { useStore } from "../../lib/store";
import { findRange, formatInputTime, formatMoment, parseTime, RANGES } from "../../lib/time";
import type { ViewState } from "../../lib/url";
import { Popover } from "./Popover";

function describeRange(view: ViewState): string {
  if (view.fixed) return `${formatMoment(view.fixed.from)} – ${formatMoment(view.fixed.to)}`;
  return findRange(view.range)?.label ?? view.range;
}

export function RangePicker() {
  const session = useSession();
  const view = useStore(session.view);
  const face = describeRange(view);
  return (
    <Popover id="range-button" label={`Time range: ${face}`} face={face}>
      {(close) => (
        <>
          <ul class="ranges">
            {RANGES.map((range) => (
              <li key={range.id}>
                <button
                  type="button"
                  aria-pressed={!view.fixed && view.range === range.id}
                  onClick={() => {
                    session.view.update((v) => ({ ...v, range: range.id, fixed: undefined, live: true }));
                    close();
                  }}
                >
                  {range.label}
                </button>
              </li>
            ))}
          </ul>
          <Absolute onDone={close} />
        </>
      )}
    </Popover>
  );
}

function Absolute({ onDone }: { onDone: () => void }) {
  const session = useSession();
  const shown = shownInterval(session.view.get(), session.now.get());
  const [from, setFrom] = useState(formatInputTime(shown.from));
  const [to, setTo] = useState(formatInputTime(shown.to));
  const [problem, setProblem] = useState<string | undefined>(undefined);
  const apply = (event: Event): void => {
    event.preventDefault();
    const start = parseTime(from);
    const end = parseTime(to);
    if (start === undefined || end === undefined) setProblem("Both moments are needed.");
    else if (start >= end) setProblem("“From” has to be before “to”.");
    else {
      session.view.update((v) => ({ ...v, fixed: { from: start, to: end }, live: false }));
      onDone();
    }
  };
  return (
    <form class="absolute" onSubmit={apply}>
      <label>
        From
        <input
          type="datetime-local"
          step="1"
          value={from}
          onInput={(event) => {
            setFrom(event.currentTarget.value);
          }}
        />
      </label>
      <label>
        To
        <input
          type="datetime-local"
          step="1"
          value={to}
          onInput={(event) => {
            setTo(event.currentTarget.value);
          }}
        />
      </label>
      {problem !== undefined && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      <button type="submit" class="plain-button">
        Show this time
      </button>
    </form>
  );
}
