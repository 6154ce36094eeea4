// SPDX-License-Identifier: Apache-2.0

// Chooses the time range: relative to now, or from one moment to another.
import { useState } from "preact/hooks";
import { shownInterval, useSession } from "../../lib/session";
import { useStore } from "../../lib/store";
import { findRange, formatInputTime, formatMoment, parseInputTime, rangeProblem, RANGES, type Zone, zoneName } from "../../lib/time";
import type { ViewState } from "../../lib/url";
import { rememberZone } from "../../lib/zone";
import { Popover } from "./Popover";
import { Segmented } from "./Segmented";

function describeRange(view: ViewState): string {
  if (view.fixed) return `${formatMoment(view.fixed.from)} – ${formatMoment(view.fixed.to)}`;
  return findRange(view.range)?.label ?? view.range;
}

export function RangePicker() {
  const session = useSession();
  const view = useStore(session.view);
  const face = `${describeRange(view)} · ${zoneName(view.fixed?.to ?? session.now.get())}`;
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
          <Typed onDone={close} />
          <Absolute key={view.zone} onDone={close} />
          <ZoneSwitch />
        </>
      )}
    </Popover>
  );
}

/** An input for a duration that is not in the list. */
function Typed({ onDone }: { onDone: () => void }) {
  const session = useSession();
  const [typed, setTyped] = useState("");
  const [problem, setProblem] = useState<string | undefined>(undefined);
  const apply = (event: Event): void => {
    event.preventDefault();
    const range = typed.replace(/\s/g, "");
    const wrong = rangeProblem(range);
    setProblem(wrong);
    if (wrong !== undefined) return;
    session.view.update((v) => ({ ...v, range, fixed: undefined, live: true }));
    onDone();
  };
  return (
    <form class="typed" onSubmit={apply}>
      <label>
        Last
        <input
          name="typed-range"
          placeholder="90m, 2d, 1h30m"
          autocomplete="off"
          spellcheck={false}
          aria-invalid={problem !== undefined}
          value={typed}
          onInput={(event) => {
            setTyped(event.currentTarget.value);
            setProblem(undefined);
          }}
        />
      </label>
      <button type="submit" class="plain-button">
        Show
      </button>
      {problem !== undefined && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
    </form>
  );
}

const ZONES: readonly Zone[] = ["local", "utc"];

function ZoneSwitch() {
  const session = useSession();
  const { zone } = useStore(session.view);
  return (
    <div class="zones">
      <Segmented
        label="Time zone"
        options={ZONES}
        value={zone}
        onChoose={(each) => {
          rememberZone(each);
          session.view.update((v) => ({ ...v, zone: each }));
        }}
      >
        {(each) => (each === "utc" ? "UTC" : `Local (${zoneName(session.now.get(), "local")})`)}
      </Segmented>
    </div>
  );
}

function Absolute({ onDone }: { onDone: () => void }) {
  const session = useSession();
  const view = session.view.get();
  const shown = view.fixed ?? shownInterval(view, session.now.get());
  const [from, setFrom] = useState(formatInputTime(shown.from));
  const [to, setTo] = useState(formatInputTime(shown.to));
  const [problem, setProblem] = useState<string | undefined>(undefined);
  const apply = (event: Event): void => {
    event.preventDefault();
    const start = parseInputTime(from);
    const end = parseInputTime(to);
    if (start === undefined || end === undefined) setProblem("Enter both times.");
    else if (start >= end) setProblem("“From” has to be before “to”.");
    else {
      session.view.update((v) => ({ ...v, fixed: { from: start, to: end }, live: false }));
      onDone();
    }
  };
  return (
    <form class="absolute" onSubmit={apply}>
      <label>
        From ({zoneName(shown.from)})
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
        To ({zoneName(shown.to)})
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
