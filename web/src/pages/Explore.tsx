// SPDX-License-Identifier: Apache-2.0

// PromQL with completion, as charts over the time range or as tables at its end. The queries are in the URL only.
import { useEffect, useState } from "preact/hooks";
import type { ApiError } from "../api/errors";
import { type ExploreShow, MOST_QUERIES, NO_EXPLORE, SHOWS } from "../lib/page-params";
import type { Suggestion } from "../lib/promql-complete";
import { useSession } from "../lib/session";
import { useStore } from "../lib/store";
import type { Unit } from "../lib/units";
import { allFilters } from "../lib/url";
import { ViewLink } from "../lib/ViewLink";
import { type Loaded, useRequest, useShown } from "../panels/use-data";
import { Keep } from "./explore/Keep";
import { QueryEditor } from "./explore/QueryEditor";
import { Result } from "./explore/Result";
import { Segmented } from "./shell/Segmented";
import "../styles/explore.css";

export { Dashboards } from "./Dashboards"; // both draw results of queries, and load together
export { Fleet } from "./Fleet";

const SHOW_TITLE: Readonly<Record<ExploreShow, string>> = { chart: "Chart over the range", table: "Table at its end" };

const EXAMPLES: readonly { title: string; expr: string; show: ExploreShow }[] = [
  { title: "The ten most frequent system calls", expr: "topk(10, sum by (workload, syscall) (rate(teescope_syscalls_total[1m])))", show: "table" },
  { title: "Context switches per system call", expr: "sum by (workload) (rate(teescope_context_switches_total[1m])) / sum by (workload) (rate(teescope_syscalls_total[1m]))", show: "chart" },
  { title: "Memory of each workload", expr: "teescope_resident_memory_bytes", show: "table" },
  { title: "CPU time of teescope itself", expr: 'rate(process_cpu_seconds_total{job="teescope"}[1m])', show: "chart" },
];

export function Explore() {
  const session = useSession();
  const view = useStore(session.view);
  const { exprs, show, units = [] } = view.explore ?? NO_EXPLORE;
  const [drafts, setDrafts] = useState<readonly string[]>(exprs);
  const [errors, setErrors] = useState<Readonly<Record<string, ApiError>>>({});
  const metrics = useMetrics();
  // The address holds the queries: Back and forward change the text too.
  useEffect(() => {
    setDrafts(exprs);
  }, [exprs.join("\u0000")]);
  const texts = drafts.length > 0 ? drafts : [""];
  const run = (wanted: readonly string[], how: ExploreShow, of: readonly (Unit | "")[] = units): void => {
    const written = wanted.map((text, i) => ({ text, unit: of[i] ?? ("" as const) })).filter(({ text }) => text.trim() !== "");
    session.view.update((v) => ({ ...v, explore: { exprs: written.map((w) => w.text), show: how, units: written.map((w) => w.unit) } }));
  };
  return (
    <>
      <form
        class="panel explore-form"
        aria-label="Queries"
        data-panel="explore-form"
        onSubmit={(event) => {
          event.preventDefault();
          run(texts, show);
        }}
      >
        {texts.map((text, i) => (
          <div class="query-row" key={i}>
            <QueryEditor
              index={i}
              value={text}
              metrics={metrics.value ?? []}
              error={errors[text]}
              onInput={(changed) => {
                setDrafts(texts.map((other, k) => (k === i ? changed : other)));
              }}
              onRun={() => {
                run(texts, show);
              }}
            />
            {texts.length > 1 && (
              <button
                type="button"
                class="icon-button"
                aria-label={`Remove query ${i + 1}`}
                onClick={() => {
                  const rest = texts.filter((_, k) => k !== i);
                  setDrafts(rest);
                  run(rest, show, texts.map((_, k) => units[k] ?? "").filter((_, k) => k !== i));
                }}
              >
                ×
              </button>
            )}
          </div>
        ))}
        <div class="explore-actions">
          <button type="submit" class="control primary">
            Run
          </button>
          <Segmented
            label="Display"
            joined
            options={SHOWS}
            value={show}
            onChoose={(how) => {
              run(texts, how);
            }}
          >
            {(how) => SHOW_TITLE[how]}
          </Segmented>
          <button
            type="button"
            class="control"
            disabled={texts.length >= MOST_QUERIES}
            onClick={() => {
              setDrafts([...texts, ""]);
            }}
          >
            Add a query
          </button>
          <p class="aside">Enter runs the query. Shift+Enter starts a new line. Ctrl+Space shows suggestions; arrow keys and Tab choose one.</p>
        </div>
        {allFilters(view).length > 0 && <p class="aside">The filters do not apply to these queries: they run as written.</p>}
        {metrics.error && <p class="panel-notice">No names to complete with: {metrics.error.message}</p>}
      </form>
      {exprs.length === 0 ? <Examples /> : <Keep key={exprs.join("\u0000")} exprs={exprs} units={units} show={show} />}
      {exprs.map((expr, i) => (
        <Result
          key={`${i} ${expr}`}
          index={i}
          expr={expr}
          show={show}
          chosenUnit={units[i] ?? ""}
          onUnit={(unit) => {
            run(exprs, show, exprs.map((_, k) => (k === i ? unit : (units[k] ?? ""))));
          }}
          onError={(error) => {
            setErrors((before) => {
              const rest = Object.fromEntries(Object.entries(before).filter(([of]) => of !== expr));
              return error ? { ...rest, [expr]: error } : rest;
            });
          }}
        />
      ))}
    </>
  );
}

function Examples() {
  return (
    <section class="panel" aria-labelledby="examples-head" data-panel="explore-examples">
      <h2 id="examples-head">No query yet</h2>
      <p class="page-note">Write a query, open one from the “?” of a panel, or start with an example.</p>
      <ul class="dashes">
        {EXAMPLES.map(({ title, expr, show }) => (
          <li key={title}>
            <ViewLink to={{ explore: { exprs: [expr], show } }}>{title}</ViewLink>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Returns the names of all metrics of the time range, with their metadata. */
function useMetrics(): Loaded<Suggestion[]> {
  const { interval } = useShown();
  return useRequest(
    async ({ client }, signal) => {
      const [names, known] = await Promise.all([
        client.labelValues("__name__", '{__name__!=""}', interval.from, interval.to, signal),
        client.metadata(signal),
      ]);
      return names.map((text) => ({ text, about: known[text]?.[0]?.type ?? "metric" }));
    },
    `metrics ${interval.to - interval.from}`,
    "",
    true,
  );
}
