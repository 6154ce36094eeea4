// SPDX-License-Identifier: Apache-2.0

// One of a few choices, side by side: a group of radio buttons, of which the
// chosen one has the Tab stop and arrow keys choose the next (ARIA Authoring
// Practices, radio group).
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";

interface SegmentedProps<T extends string> {
  label: string;
  options: readonly T[];
  value: T;
  /** Called with what was chosen, and whether by an arrow key: then the focus has to stay. */
  onChoose: (option: T, byKey: boolean) => void;
  /** What the button of an option shows. */
  children: (option: T) => ComponentChildren;
  /** Joined buttons with borders, for a place among controls. */
  joined?: boolean;
}

/** Where a key goes from a place among so many, round at the ends. */
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
        event.stopPropagation(); // what is around it may move by the same keys
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
