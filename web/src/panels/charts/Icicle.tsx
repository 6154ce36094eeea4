// SPDX-License-Identifier: Apache-2.0

// A tree as rows of parts. One part at a time has the focus. Arrow keys move it, Enter and a click zoom in, Escape
// zooms out.
import { useRef, useState } from "preact/hooks";
import { GREY, hashName, HUES, slotVariable } from "../../lib/colour";
import { formatShare, formatValue, type Unit } from "../../lib/units";
import { findNode, type FlameNode, neighbour, layOut, type LaidOut } from "../flame";

const ROW = 22;

interface IcicleProps {
  tree: FlameNode;
  unit: Unit;
  title: string;
  /** Names of the levels below the root. */
  levels: readonly string[];
  /** The path of the part that fills the width. */
  wide: readonly string[];
  onWide: (path: readonly string[]) => void;
}

/** Describes a part in words: name, value, and share of the whole. */
export function partText(part: LaidOut, whole: number, unit: Unit, levels: readonly string[]): string {
  const level = levels[part.depth - 1];
  const name = part.path.length === 0 ? part.node.name : part.path.join(", ");
  return `${level === undefined ? "" : `${level}: `}${name}: ${formatValue(part.node.value, unit)}, ${formatShare(part.node.value / whole)} of all`;
}

const id = (path: readonly string[]): string => path.join("\u0000");

export function Icicle({ tree, unit, title, levels, wide, onWide }: IcicleProps) {
  const [at, setAt] = useState<readonly string[]>([]);
  const [hover, setHover] = useState<LaidOut | undefined>(undefined);
  const box = useRef<HTMLDivElement>(null);
  const parts = layOut(tree, wide);
  const depth = parts.reduce((most, p) => Math.max(most, p.depth), 0) + 1;
  const focused = findNode(tree, at).path;
  const current = parts.find((p) => id(p.path) === id(focused)) ?? parts[0];
  const said = hover ?? current;
  const go = (path: readonly string[], widen: boolean): void => {
    // The parent of an invisible part is zoomed.
    const visible = layOut(tree, wide).some((p) => id(p.path) === id(path));
    if (widen) onWide(path);
    else if (!visible) onWide(path.slice(0, -1));
    setAt(path);
    requestAnimationFrame(() => {
      box.current?.querySelector<HTMLElement>('[tabindex="0"]')?.focus();
    });
  };
  return (
    <>
      <div
        class="icicle"
        role="tree"
        aria-label={`${title}. Arrow keys move, Enter zooms into a part, Escape shows all.`}
        ref={(element) => {
          box.current = element;
          if (element) element.style.height = `${depth * ROW}px`;
        }}
        onMouseLeave={() => {
          setHover(undefined);
        }}
        onKeyDown={(event) => {
          if (event.key.startsWith("Arrow")) go(neighbour(tree, focused, event.key), false);
          else if (event.key === "Enter" || event.key === " ") go(focused, true);
          else if (event.key === "Escape" && wide.length > 0) go([], true);
          else return;
          event.preventDefault();
        }}
      >
        {parts.map((part) => (
          <div
            key={id(part.path)}
            class="part"
            role="treeitem"
            aria-level={part.depth + 1}
            aria-expanded={part.node.children.length > 0 ? true : undefined}
            aria-selected={id(part.path) === id(focused)}
            aria-label={partText(part, tree.value, unit, levels)}
            title={partText(part, tree.value, unit, levels)}
            tabIndex={part === current ? 0 : -1}
            ref={position(part)}
            onClick={() => {
              go(part.path, true);
            }}
            onMouseEnter={() => {
              setHover(part);
            }}
          >
            <span>{part.node.name}</span>
          </div>
        ))}
      </div>
      <p class="at">{said && partText(said, tree.value, unit, levels)}</p>
    </>
  );
}

/** Positions a part through the DOM, because the page's policy forbids style attributes. */
function position(part: LaidOut): (element: HTMLElement | null) => void {
  const name = part.node.name;
  const slot = part.depth === 0 || name.startsWith("the rest (") ? GREY : hashName(name) % HUES;
  return (element) => {
    if (!element) return;
    element.style.left = `${part.left * 100}%`;
    element.style.width = `${part.width * 100}%`;
    element.style.top = `${part.depth * ROW}px`;
    element.style.setProperty("--hue", `var(${slotVariable(slot)})`);
  };
}
