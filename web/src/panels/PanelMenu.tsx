// SPDX-License-Identifier: Apache-2.0

// The menu of a panel: exports as picture, CSV, Grafana panel, PromQL. Arrow keys move the focus, Escape closes the
// menu and returns the focus.
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useSession } from "../lib/session";
import { moment, panelCsv } from "./export/csv";
import { picture } from "./export/picture";
import { copyText, saveFile } from "./export/save";
import type { PanelDef } from "./types";
import { useShown } from "./use-data";
import type { PanelSetting } from "./use-panel";

interface PanelMenuProps {
  def: PanelDef;
  /** The queries as they were sent. */
  exprs: readonly string[];
  setting: PanelSetting;
}

export function PanelMenu({ def, exprs, setting }: PanelMenuProps) {
  const session = useSession();
  const { interval, ...filling } = useShown();
  const [open, setOpen] = useState(false);
  const [message, setMessage] = useState("");
  const root = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLUListElement>(null);
  const menuId = useId();
  const name = `teescope-${def.id}`;

  const close = (): void => {
    setOpen(false);
    button.current?.focus();
  };
  // A layout effect, so that the next key already reaches the menu.
  useLayoutEffect(() => {
    if (open) items(list.current)[0]?.focus();
  }, [open]);
  useEffect(() => {
    if (!open) return;
    const outside = (event: Event): void => {
      if (event.target instanceof Node && !root.current?.contains(event.target)) setOpen(false);
    };
    document.addEventListener("pointerdown", outside);
    return () => {
      document.removeEventListener("pointerdown", outside);
    };
  }, [open]);
  useEffect(() => {
    if (message === "") return;
    const timer = setTimeout(() => {
      setMessage("");
    }, 4000);
    return () => {
      clearTimeout(timer);
    };
  }, [message]);

  const run = (work: () => Promise<string>): void => {
    close();
    setMessage("");
    work().then(setMessage, (thrown: unknown) => {
      setMessage(thrown instanceof Error ? thrown.message : "The panel could not be exported.");
    });
  };
  const asPicture = async (): Promise<string> => {
    const panel = root.current?.closest<HTMLElement>("[data-panel]");
    if (!panel) return "";
    const chosen = [...filling.workloads, ...(filling.filters ?? []).map((f) => `${f.kind} ${f.text}`)];
    const of = chosen.length > 0 ? `${chosen.join(", ")} · ` : "";
    saveFile(`${name}.png`, await picture(panel, `${of}${moment(Math.round(interval.from))} to ${moment(Math.round(interval.to))}`));
    return `Saved ${name}.png`;
  };
  const asCsv = async (): Promise<string> => {
    const text = await panelCsv(def, session.client, interval, filling);
    saveFile(`${name}.csv`, new Blob([text], { type: "text/csv" }));
    return `Saved ${name}.csv`;
  };
  const asPromql = async (): Promise<string> => {
    return (await copyText(exprs.join("\n"))) ? "PromQL copied" : "The browser does not allow copying. The PromQL is under “?”.";
  };

  return (
    <div
      class="panel-menu"
      ref={root}
      onKeyDown={(event) => {
        if (open) move(event, list.current, close);
      }}
    >
      <button
        type="button"
        ref={button}
        class="icon-button"
        aria-label={`Export “${def.title}”`}
        aria-haspopup="menu"
        aria-expanded={open}
        aria-controls={menuId}
        onClick={() => {
          setOpen(!open);
        }}
      >
        ⋯
      </button>
      {open && (
        <ul class="menu" id={menuId} ref={list} role="menu" aria-label={`Export “${def.title}”`}>
          <Item text="Picture (PNG)" onChoose={() => { run(asPicture); }} />
          <Item text="Figures (CSV)" onChoose={() => { run(asCsv); }} />
          {session.recorded !== true && (
            <li role="none">
              <a role="menuitem" tabIndex={-1} href={`api/dashboards/panel/${def.id}`} download={`${name}.json`} onClick={close}>
                Grafana panel (JSON)
              </a>
            </li>
          )}
          <Item text="Copy the PromQL" onChoose={() => { run(asPromql); }} />
          {setting.isSet && <Item text="Reset (Escape)" onChoose={() => { close(); setting.reset(); }} />}
        </ul>
      )}
      <span role="status" class={message === "" ? "only-spoken" : "menu-message"}>
        {message}
      </span>
    </div>
  );
}

function Item({ text, onChoose }: { text: string; onChoose: () => void }) {
  return (
    <li role="none">
      <button type="button" role="menuitem" tabIndex={-1} onClick={onChoose}>
        {text}
      </button>
    </li>
  );
}

function items(list: HTMLElement | null): HTMLElement[] {
  return [...(list?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
}

/** Moves the focus between menu items. */
function move(event: KeyboardEvent, list: HTMLElement | null, close: () => void): void {
  const all = items(list);
  const at = all.findIndex((item) => item === document.activeElement);
  const to: Readonly<Record<string, number>> = { ArrowDown: at + 1, ArrowUp: at - 1 + all.length, Home: 0, End: all.length - 1 };
  const next = to[event.key];
  if (next !== undefined) all[next % all.length]?.focus();
  else if (event.key === "Escape" || event.key === "Tab") close();
  else return;
  event.stopPropagation(); // the page has shortcuts of its own
  if (event.key !== "Tab") event.preventDefault();
}
