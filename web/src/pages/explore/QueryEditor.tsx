// SPDX-License-Identifier: Apache-2.0

// A text area for PromQL that completes at the cursor. Arrow keys choose. Tab takes the chosen or first suggestion.
// Enter takes the chosen one, or else runs the query. Escape closes the list. Shift+Enter begins a line.
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { ApiError } from "../../api/errors";
import { quote } from "../../lib/filters";
import { complete, type Context, contextOf, type Suggestion, suggest } from "../../lib/promql-complete";
import { LONGEST_QUERY } from "../../lib/page-params";
import { metricsIn } from "../../lib/promql";
import { useRequest, useShown } from "../../panels/use-data";
import { explainRefusal } from "./advice";

interface EditorProps {
  index: number;
  value: string;
  metrics: readonly Suggestion[];
  /** Why the server refused this query. */
  error: ApiError | undefined;
  onInput: (text: string) => void;
  onRun: () => void;
}

export function QueryEditor({ index, value, metrics, error, onInput, onRun }: EditorProps) {
  const area = useRef<HTMLTextAreaElement>(null);
  const listId = useId();
  const [cursor, setCursor] = useState<number | undefined>(undefined); // defined while the list may be open
  const [active, setActive] = useState(-1);
  const context = cursor === undefined ? undefined : contextOf(value, cursor);
  const known = useKnown(context, value, metrics);
  const offered = context ? suggest(context, known) : [];
  // A complete name needs no suggestion. A value still needs its closing quote.
  const isDone = context?.kind === "name" && offered.length === 1 && offered[0]?.text === context.word;
  const shown = isDone ? [] : offered;
  const open = shown.length > 0;
  const wanted = useRef<number | undefined>(undefined);

  // The cursor is set after the text has changed, and before the next key.
  useLayoutEffect(() => {
    if (wanted.current === undefined) return;
    area.current?.setSelectionRange(wanted.current, wanted.current);
    wanted.current = undefined;
  });
  useEffect(() => {
    document.getElementById(`${listId}-${active}`)?.scrollIntoView({ block: "nearest" });
  }, [active, listId]);

  const look = (): void => {
    setCursor(area.current?.selectionEnd);
    setActive(-1);
  };
  const close = (): void => {
    setCursor(undefined);
    setActive(-1);
  };
  const take = (chosen: Suggestion | undefined): void => {
    if (!context || cursor === undefined || !chosen) return;
    const edit = complete(value, cursor, context, chosen);
    wanted.current = edit.cursor;
    onInput(edit.text);
    setCursor(edit.cursor);
    setActive(-1);
  };
  const onKey = (event: KeyboardEvent): void => {
    const { key } = event;
    if (key === " " && event.ctrlKey) look();
    else if (key === "Escape" && open) close();
    else if ((key === "ArrowDown" || key === "ArrowUp") && open) {
      setActive((active + (key === "ArrowDown" ? 1 : active < 0 ? 0 : -1) + shown.length) % shown.length);
    } else if (key === "Tab" && open && !event.shiftKey) take(shown[Math.max(0, active)]);
    else if (key === "Enter" && !event.shiftKey) {
      if (open && active >= 0) take(shown[active]);
      else {
        close();
        onRun();
      }
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="query-editor">
      <textarea
        ref={area}
        id={`query-${index}`}
        rows={Math.min(8, value.split("\n").length)}
        maxLength={LONGEST_QUERY}
        spellcheck={false}
        autocomplete="off"
        autocapitalize="off"
        placeholder={index === 0 ? "sum by (syscall) (rate(teescope_syscalls_total[1m]))" : ""}
        aria-label={`Query ${index + 1}`}
        aria-autocomplete="list"
        aria-controls={open ? listId : undefined}
        aria-activedescendant={open && active >= 0 ? `${listId}-${active}` : undefined}
        aria-invalid={error !== undefined}
        aria-describedby={error ? `${listId}-error` : undefined}
        value={value}
        onInput={(event) => {
          onInput(event.currentTarget.value);
          look();
        }}
        onClick={close}
        onBlur={close}
        onKeyDown={onKey}
      />
      <span class="only-spoken" role="status">
        {open ? `${shown.length} suggestions, ${shown[Math.max(0, active)]?.text ?? ""}` : ""}
      </span>
      {open && (
        <ul class="suggestions" id={listId} role="listbox" aria-label="Suggestions">
          {shown.map((s, i) => (
            <li
              key={`${s.about} ${s.text}`}
              id={`${listId}-${i}`}
              role="option"
              aria-selected={i === active}
              onPointerDown={(event) => {
                event.preventDefault(); // keeps the focus in the text
                take(s);
              }}
            >
              <span>{s.text}</span>
              <span class="aside">{s.about}</span>
            </li>
          ))}
        </ul>
      )}
      {error && <Problem id={`${listId}-error`} error={error} expr={value} />}
    </div>
  );
}

function Problem({ id, error, expr }: { id: string; error: ApiError; expr: string }) {
  const refusal = error.kind === "query" ? explainRefusal(error.message, expr) : { problem: error.message, advice: error.advice };
  const at = "at" in refusal ? refusal.at : undefined;
  return (
    <div class="query-problem" id={id} role="alert">
      {at && (
        <pre aria-hidden="true">
          {at.line}
          {"\n"}
          {" ".repeat(at.column)}^
        </pre>
      )}
      <p>
        <strong>{refusal.problem}</strong>
        {at && <span class="aside"> at character {at.column + 1}</span>}
      </p>
      <p>{refusal.advice}</p>
    </div>
  );
}

/** Returns the names of the server for a context: metrics, labels or values. */
function useKnown(context: Context | undefined, text: string, metrics: readonly Suggestion[]): readonly Suggestion[] {
  const { interval } = useShown();
  const target = context?.kind === "label" || context?.kind === "value" ? context : undefined;
  const selector = target ? selectorFor(target, text, metrics) : "";
  const loaded = useRequest(
    async (session, signal): Promise<Suggestion[]> => {
      if (!target) return [];
      const { from, to } = interval;
      const [found, about] =
        target.kind === "label"
          ? [await session.client.labelNames(selector, from, to, signal), "label"]
          : [await session.client.labelValues(target.label, selector, from, to, signal), "value"];
      return found.filter((name) => name !== "__name__").map((name) => ({ text: name, about }));
    },
    target ? `${target.kind} ${selector} ${target.kind === "value" ? target.label : ""}` : "",
    "",
    target !== undefined,
  );
  if (context?.kind === "name") return metrics;
  return target && !loaded.stale ? (loaded.value ?? []) : [];
}

/** Returns the selector of the series whose labels are offered: the metric, or all metrics of the query. */
function selectorFor(context: Extract<Context, { kind: "label" | "value" }>, text: string, metrics: readonly Suggestion[]): string {
  const known = new Set(metrics.map((m) => m.text));
  const names = context.metric === "" ? metricsIn(text, known) : [context.metric];
  if (names.length === 0) return context.kind === "value" ? `{${context.label}!=""}` : '{__name__!=""}';
  return `{__name__=~${quote(names.join("|"))}}`;
}
