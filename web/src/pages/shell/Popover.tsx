// SPDX-License-Identifier: Apache-2.0

// A button that opens a small panel below it. Escape and a click elsewhere close it and return the focus to the
// button.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";

interface PopoverProps {
  id: string;
  label: string;
  /** The content of the button. */
  face: ComponentChildren;
  /** Whether the panel is wider than a list. */
  wide?: boolean;
  children: (close: () => void) => ComponentChildren;
}

export function Popover({ id, label, face, wide, children }: PopoverProps) {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const panelId = useId();
  const close = (): void => {
    setOpen(false);
    button.current?.focus();
  };
  useEffect(() => {
    if (!open) return;
    const outside = (event: Event): void => {
      if (event.target instanceof Node && !root.current?.contains(event.target)) setOpen(false);
    };
    document.addEventListener("pointerdown", outside);
    document.addEventListener("focusin", outside);
    return () => {
      document.removeEventListener("pointerdown", outside);
      document.removeEventListener("focusin", outside);
    };
  }, [open]);
  return (
    <div
      class="popover"
      ref={root}
      onKeyDown={(event) => {
        if (event.key === "Escape" && open) {
          event.stopPropagation();
          close();
        }
      }}
    >
      <button
        type="button"
        id={id}
        ref={button}
        class="control"
        aria-label={label}
        title={label}
        aria-expanded={open}
        aria-controls={panelId}
        onClick={() => {
          setOpen(!open);
        }}
      >
        <span class="face">{face}</span>
        <span class="arrow" aria-hidden="true">
          ▾
        </span>
      </button>
      {open && (
        <div class={wide === true ? "popover-panel wide" : "popover-panel"} id={panelId} role="dialog" aria-label={label}>
          {children(close)}
        </div>
      )}
    </div>
  );
}
