// SPDX-License-Identifier: Apache-2.0

// The legend of a chart: name, colour and value of each series, at the cursor or at the end. A click shows only one
// series; another shows all.
import { type Slot, slotVariable } from "../../lib/colour";
import { formatValue, type Unit } from "../../lib/units";

interface LegendProps {
  names: readonly string[];
  values: readonly (number | null)[];
  /** Half of the 95 % interval of each value, where it is an estimate. */
  errors?: readonly (number | null)[];
  slots: ReadonlyMap<string, Slot>;
  unit: Unit;
  alone: string | undefined;
  onAlone: (name: string | undefined) => void;
}

export function Legend({ names, values, errors, slots, unit, alone, onAlone }: LegendProps) {
  return (
    <ul class="legend">
      {names.map((name, i) => (
        <li key={name}>
          <button
            type="button"
            aria-pressed={alone === name}
            class={alone !== undefined && alone !== name ? "dim" : ""}
            title={alone === name ? "Show all series" : `Show ${name} alone`}
            onClick={() => {
              onAlone(alone === name ? undefined : name);
            }}
          >
            <span class="swatch" ref={paint(slots.get(name) ?? "rest")} />
            <span class="name">{name}</span>
            <span class="value">{formatEstimate(values[i], errors?.[i], unit)}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}

/** Formats a value, and its error if it has one. */
function formatEstimate(value: number | null | undefined, error: number | null | undefined, unit: Unit): string {
  const text = formatValue(value, unit);
  return typeof value === "number" && typeof error === "number" && error > 0 ? `${text} ± ${formatValue(error, unit)}` : text;
}

/** Sets a colour through the DOM, because the page's policy forbids style attributes. */
export function paint(slot: Slot): (element: HTMLElement | null) => void {
  return (element) => {
    if (element) element.style.background = `var(${slotVariable(slot)})`;
  };
}
