// SPDX-License-Identifier: Apache-2.0

// Chooses workloads: a searchable list of check boxes. Arrow keys move, space
// toggles, Enter in the search toggles the first match.
import { useEffect, useRef, useState } from "preact/hooks";
import { shownInterval, useSession } from "../../lib/session";
import { useStore } from "../../lib/store";
import { toggleWorkload } from "../../lib/url";
import { useAsk } from "../../panels/use-data";
import { Popover } from "./Popover";

export function WorkloadFilter() {
  const session = useSession();
  const { workloads } = useStore(session.view);
  const [first] = workloads;
  const face = first === undefined ? "All workloads" : workloads.length === 1 ? first : `${workloads.length} workloads`;
  return (
    <div class="filter">
      <Popover id="filter-button" label={`Workload filter: ${face}`} face={face}>
        {() => <Choices />}
      </Popover>
      {first !== undefined && (
        <button
          type="button"
          class="icon-button"
          aria-label="Show all workloads"
          title="Show all workloads"
          onClick={() => {
            session.view.update((v) => ({ ...v, workloads: [] }));
          }}
        >
          ×
        </button>
      )}
    </div>
  );
}

/** Names that contain all words of the search; chosen ones come first and stay even if gone. */
export function matching(names: readonly string[], chosen: readonly string[], search: string): string[] {
  const words = search.toLowerCase().split(/\s+/).filter((w) => w !== "");
  const rest = [...new Set(names)].filter((name) => !chosen.includes(name)).sort();
  return [...chosen, ...rest].filter((name) => words.every((word) => name.toLowerCase().includes(word)));
}

function Choices() {
  const session = useSession();
  const view = useStore(session.view);
  const [search, setSearch] = useState("");
  const [chosenAtOpen] = useState(view.workloads);
  const box = useRef<HTMLDivElement>(null);
  const { from, to } = shownInterval(view, session.now.get());
  const loaded = useAsk(
    (s, signal) => s.client.labelValues("workload", "teescope_workload_info", from, to, signal),
    `${view.range} ${view.fixed?.from ?? ""} ${view.fixed?.to ?? ""}`,
    "",
    true,
  );
  const shown = matching(loaded.value ?? [], chosenAtOpen, search);
  const toggle = (name: string): void => {
    session.view.update((v) => toggleWorkload(v, name));
  };
  useEffect(() => {
    box.current?.querySelector<HTMLElement>("input")?.focus();
  }, []);
  const move = (event: KeyboardEvent, by: number): void => {
    const inputs = [...(box.current?.querySelectorAll<HTMLElement>("input") ?? [])];
    const at = inputs.findIndex((input) => input === document.activeElement);
    inputs[Math.max(0, Math.min(inputs.length - 1, at + by))]?.focus();
    event.preventDefault();
  };
  return (
    <div
      ref={box}
      onKeyDown={(event) => {
        if (event.key === "ArrowDown") move(event, 1);
        if (event.key === "ArrowUp") move(event, -1);
      }}
    >
      <input
        type="search"
        class="search"
        placeholder="Find a workload"
        aria-label="Find a workload"
        value={search}
        onInput={(event) => {
          setSearch(event.currentTarget.value);
        }}
        onKeyDown={(event) => {
          const [match] = shown;
          if (event.key === "Enter" && match !== undefined) toggle(match);
        }}
      />
      <ul class="choices">
        {shown.map((name) => (
          <li key={name}>
            <label>
              <input
                type="checkbox"
                checked={view.workloads.includes(name)}
                onChange={() => {
                  toggle(name);
                }}
              />
              {name}
            </label>
          </li>
        ))}
      </ul>
      {shown.length === 0 && (
        <p class="choices-none" role="status">
          {loaded.error ? loaded.error.message : loaded.value ? "No workload of that name in this time range." : "Asking…"}
        </p>
      )}
    </div>
  );
}
