// SPDX-License-Identifier: Apache-2.0

// A choice of a few options side by side: a radio group. The chosen button has the Tab stop, and arrow keys choose
// the next (ARIA Authoring Practices, radio group).
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";

interface SegmentedProps<T extends string> {
  label: string;
  options: readonly T[];
  value: T;
  /** Called with the chosen option, and whether an arrow key chose it. The focus must then stay. */
  onChoose: (option: T, byKey: boolean) => void;
  /** The content of an option's button. */
  children: (option: T) => ComponentChildren;
  /** Joined buttons with borders, for use among other controls. */
  joined?: boolean;
}

/** Returns the option that a key moves to. It wraps around at the ends. */
export function nextOption(at: number, count: number, key: string): number | undefined {
  switch (key) {
    case "ArrowRight":
    case "ArrowDown":
      return (at + 1) % count;
    case "ArrowLeft":
    case "ArrowUp":
      return (at - 1 + count) % count;
    case "Home":
      return 0;
    case "End":
      return count - 1;
    default:
      return undefined;
  }
}

export function Segmented<T extends string>({ label, options, value, onChoose, children, joined }: SegmentedProps<T>) {
  const group = useRef<HTMLDivElement>(null);
  return (
    <div
      ref={group}
      role="radiogroup"
      aria-label={label}
      class={joined === true ? "segmented joined" : "segmented"}
      onKeyDown={(event) => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const at = nextOption(options.indexOf(value), options.length, event.key);
        const option = at === undefined ? undefined : options[at];
        if (at === undefined || option === undefined) return;
        event.preventDefault();
        event.stopPropagation(); // outer elements may use the same keys
        group.current?.querySelectorAll<HTMLElement>("[role=radio]")[at]?.focus();
        onChoose(option, true);
      }}
    >
      {options.map((option) => (
        <button
          type="button"
          role="radio"
          key={option}
          class={joined === true ? "control" : undefined}
          aria-checked={option === value}
          tabIndex={option === value ? 0 : -1}
          onClick={() => {
            onChoose(option, false);
          }}
        >
          {children(option)}
        </button>
      ))}
    </div>
  );
}
