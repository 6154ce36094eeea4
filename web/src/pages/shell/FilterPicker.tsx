// SPDX-License-Identifier: Apache-2.0

// Chooses filters: a kind, and names of that kind from a list or a regular expression. Arrow keys move, space
// toggles. Enter in the search toggles the first match or adds the expression.
import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Choice, type Choices, choicesOf, inside, matching, MOST_SERIES } from "../../lib/facets";
import { browserRegex, type Filter, type Kind, KINDS, LONGEST_PATTERN } from "../../lib/filters";
import { shownInterval, useSession } from "../../lib/session";
import { useStore } from "../../lib/store";
import { allFilters, toggleFilter } from "../../lib/url";
import { usePatternCheck } from "../../panels/patterns";
import { useRequest } from "../../panels/use-data";
import { PatternProblem } from "./PatternProblem";
import { Popover } from "./Popover";
import { Segmented } from "./Segmented";

/** Maximum number of names in the list. The search finds the others. */
const MOST_SHOWN = 50;

export function FilterPicker() {
  const view = useStore(useSession().view);
  const filters = allFilters(view);
  const [first] = filters;
  const face = first === undefined ? "All workloads" : filters.length === 1 ? first.text : `${filters.length} filters`;
  return (
    <Popover id="filter-button" label={`Filters: ${face}`} face={face} wide>
      {() => <Picker />}
    </Popover>
  );
}

function useChoices(): { choices: Choices | undefined; cut: boolean; problem: string | undefined } {
  const session = useSession();
  const view = useStore(session.view);
  const { from, to } = shownInterval(view, session.now.get());
  const { value, error } = useRequest(
    (s, signal) => s.client.series(["teescope_workload_info", "teescope_container_info"], from, to, MOST_SERIES, signal),
    `${view.range} ${view.fixed?.from ?? ""} ${view.fixed?.to ?? ""}`,
    "",
    true,
  );
  const filters = allFilters(view);
  const choices = useMemo(() => value && choicesOf(value, filters), [value, JSON.stringify(filters)]);
  return { choices, cut: value !== undefined && value.length >= MOST_SERIES, problem: error?.message };
}

function Picker() {
  const session = useSession();
  const view = useStore(session.view);
  const [kind, setKind] = useState<Kind>("workload");
  const [typed, setTyped] = useState("");
  const [regex, setRegex] = useState(false);
  const [reach, setReach] = useState(false); // lists names outside the other filters too
  const { choices, cut, problem: noChoices } = useChoices();
  const [chosenAtOpen] = useState(allFilters(view));
  const box = useRef<HTMLDivElement>(null);
  const search = useRef<HTMLInputElement>(null);
  const [focusCount, setFocusCount] = useState(0);
  useLayoutEffect(() => {
    search.current?.focus();
    search.current?.select(); // another kind keeps the search, and typing replaces it
  }, [focusCount]);
  const pinned = chosenAtOpen.filter((f) => f.kind === kind && !f.regex).map((f) => f.text);
  const all = choices?.[kind] ?? [];
  const left = inside(all);
  const found = matching(all, pinned, typed);
  const near = found.filter((c) => c.count > 0 || pinned.includes(c.name));
  const far = found.filter((c) => !near.includes(c));
  const shown = reach ? [...near, ...far] : near;
  const toggle = (filter: Filter): void => {
    session.view.update((v) => toggleFilter(v, filter));
  };
  const problem = usePatternCheck(regex ? typed : "");
  const [entered, setEntered] = useState(""); // the pattern to add once the server has accepted it
  const add = (): void => {
    toggle({ kind, text: typed, regex });
    setTyped("");
    setEntered("");
  };
  const enter = (): void => {
    const [match] = shown;
    if (!regex && match) toggle({ kind, text: match.name, regex });
    else if (regex && problem === "") add(); // at once: Escape may close the picker before an effect runs
    else if (regex) setEntered(typed);
  };
  useEffect(() => {
    if (regex && entered !== "" && entered === typed && problem === "") add();
  }, [entered, typed, problem]);
  const move = (event: KeyboardEvent, by: number): void => {
    const inputs = [...(box.current?.querySelectorAll<HTMLElement>("input") ?? [])];
    const at = inputs.findIndex((input) => input === document.activeElement);
    inputs[Math.max(0, Math.min(inputs.length - 1, at + by))]?.focus();
    event.preventDefault();
  };
  const noteId = useId();
  const what = regex ? `Regular expression for the name of a ${kind}` : `Find a ${kind}`;
  return (
    <div
      ref={box}
      onKeyDown={(event) => {
        if (event.key === "ArrowDown") move(event, 1);
        if (event.key === "ArrowUp") move(event, -1);
      }}
    >
      <div class="kinds">
        <Segmented
          label="Kind of filter"
          options={KINDS}
          value={kind}
          onChoose={(each, byKey) => {
            setKind(each);
            setReach(false);
            if (!byKey) setFocusCount(focusCount + 1);
          }}
        >
          {(each) => (
            <>
              {each} <span class="aside">{choices && inside(choices[each]).length}</span>
            </>
          )}
        </Segmented>
      </div>
      <div class="search-row">
        <input
          ref={search}
          type="search"
          class={regex ? "search pattern" : "search"}
          placeholder={regex ? "nginx-.*|redis" : what}
          aria-label={what}
          aria-invalid={Boolean(problem)}
          maxLength={regex ? LONGEST_PATTERN : undefined}
          aria-describedby={regex ? noteId : undefined}
          spellcheck={false}
          autocomplete="off"
          value={typed}
          onInput={(event) => {
            setTyped(event.currentTarget.value);
          }}
          onKeyDown={(event) => {
            if (event.key !== "Enter") return;
            enter();
            if (!regex) event.currentTarget.select();
          }}
        />
        <button
          type="button"
          class="control square pattern"
          aria-label="Regular expression"
          aria-pressed={regex}
          title="Write a regular expression"
          onClick={() => {
            setRegex(!regex);
            setFocusCount(focusCount + 1);
          }}
        >
          .*
        </button>
      </div>
      {regex && <Pattern id={noteId} typed={typed} problem={problem} names={left} onAdd={enter} />}
      <List kind={kind} choices={regex ? matchedBy(typed, problem, left) : shown} filters={allFilters(view)} onToggle={toggle} />
      {!regex && far.length > 0 && (
        <p class="choices-none">
          {far.length} {reach ? "of them" : "more"} outside the other filters.{" "}
          <button
            type="button"
            class="plain-button"
            aria-expanded={reach}
            onClick={() => {
              setReach(!reach);
            }}
          >
            {reach ? "Hide" : "Show"}
          </button>
        </p>
      )}
      <p class="choices-none" role="status">
        {choices === undefined ? (noChoices ?? "Loading…") : !regex && shown.length === 0 && noneText(kind, all.length, far.length)}
        {cut && ` These are the first ${MOST_SERIES} series of this time range; a regular expression finds the others.`}
      </p>
    </div>
  );
}

function noneText(kind: Kind, there: number, outside: number): string {
  if (outside > 0) return "Nothing matches the other filters.";
  if (there > 0) return `No ${kind} has this text in its name.`;
  return kind === "runtime" ? "No enclave runtime was recognised in this time range." : `No ${kind} was seen in this time range.`;
}

/** Returns the names that a valid pattern matches, where the browser can evaluate it. */
function matchedBy(typed: string, problem: string | undefined, all: readonly Choice[]): readonly Choice[] {
  const expression = problem === "" ? browserRegex(typed) : undefined;
  return expression ? all.filter(({ name }) => expression.test(name)) : [];
}

interface PatternProps {
  id: string;
  typed: string;
  problem: string | undefined;
  names: readonly Choice[];
  onAdd: () => void;
}

/** Which names a regular expression matches, or why the server refuses it. */
function Pattern({ id, typed, problem, names, onAdd }: PatternProps) {
  const known = browserRegex(typed) !== undefined;
  return (
    <div id={id} class="pattern-note">
      {problem ? (
        <PatternProblem reason={problem} />
      ) : typed === "" ? (
        <p>
          The whole name must match. <code>.</code> is any character, <code>.*</code> any number of them, <code>a|b</code> either of two,{" "}
          <code>(?i)</code> in front: capitals or not. Regular expressions are those of RE2.
        </p>
      ) : (
        <p role="status">
          {problem === undefined && "Checking… "}
          {problem === "" && known && `Matches ${matchedBy(typed, problem, names).length} of ${names.length}. `}
          <button type="button" class="plain-button" onClick={onAdd}>
            Add it (Enter)
          </button>
        </p>
      )}
    </div>
  );
}

/** The text beside a name. */
function countText(count: number, total: number, unit: string): string {
  const plural = (n: number): string => `${n} ${unit}${n === 1 ? "" : "s"}`;
  if (total === 0) return "Not seen in this time range";
  return count === total ? plural(count) : `${plural(count)} within the other filters, ${total} without`;
}

interface ListProps {
  kind: Kind;
  choices: readonly Choice[];
  filters: readonly Filter[];
  onToggle: (filter: Filter) => void;
}

function List({ kind, choices, filters, onToggle }: ListProps) {
  const more = choices.length - MOST_SHOWN;
  const unit = kind === "workload" ? "node" : "workload";
  return (
    <>
      <ul class="choices">
        {choices.slice(0, MOST_SHOWN).map(({ name, count, total }) => (
          <li key={name} class={count === 0 ? "outside" : undefined}>
            <label>
              <input
                type="checkbox"
                checked={filters.some((f) => f.kind === kind && !f.regex && f.text === name)}
                onChange={() => {
                  onToggle({ kind, text: name, regex: false });
                }}
              />
              <span class="name">{name}</span>
              {(kind !== "workload" || count !== 1) && (
                <span class="aside" title={countText(count, total, unit)}>
                  {total === 0 ? "gone" : count}
                </span>
              )}
            </label>
          </li>
        ))}
      </ul>
      {more > 0 && <p class="choices-none">{more} more: type a part of the name.</p>}
    </>
  );
}
