// SPDX-License-Identifier: Apache-2.0

// Two workloads, or two times of one, on the same axes, and divided by the same
// work if wanted. All of it is in the URL.
import { useMemo } from "preact/hooks";
import { ofKind } from "../lib/filters";
import { type Divisor, parseDivisor } from "../lib/normalise";
import { type CompareParams, NO_COMPARE } from "../lib/page-params";
import { useSession } from "../lib/session";
import { useStore } from "../lib/store";
import { formatSpan, type Interval } from "../lib/time";
import type { ViewState } from "../lib/url";
import { listWords } from "../lib/words";
import { usePairMarks } from "../panels/use-marks";
import { CompareForm } from "./compare/CompareForm";
import { PairChart } from "./compare/PairChart";
import { RatioTable } from "./compare/RatioTable";
import { type Row, shape } from "./compare/shape";
import { type Compared, type Divisors, useCompared } from "./compare/use-compared";
import "../styles/compare.css";

/** What is compared: what was not chosen here is taken from the filter, and an earlier time alone is of the same workload. */
function chosen(view: ViewState): CompareParams {
  const params = view.compare ?? NO_COMPARE;
  const a = params.a === "" ? (view.workloads[0] ?? "") : params.a;
  const other = params.offset > 0 ? a : (view.workloads.find((name) => name !== a) ?? "");
  return { ...params, a, b: params.b === "" ? other : params.b };
}

/** The divisors of both sides, or what is wrong with them. */
function divisorsOf({ per, perB }: CompareParams): Divisors | undefined | string {
  const a = parseDivisor(per);
  const b = parseDivisor(perB === "" ? per : perB);
  for (const side of [a, b]) if (typeof side === "string") return side;
  return a && b ? { a: a as Divisor, b: b as Divisor } : undefined;
}

export function Compare() {
  const session = useSession();
  const view = useStore(session.view);
  const params = chosen(view);
  const divisors = divisorsOf(params);
  const same = params.a !== "" && params.a === params.b && params.offset === 0;
  const ready = params.a !== "" && params.b !== "" && !same && typeof divisors !== "string";
  return (
    <>
      <CompareForm
        params={params}
        problem={typeof divisors === "string" ? divisors : undefined}
        onChange={(change) => {
          session.view.update((v) => ({ ...v, compare: { ...chosen(v), ...change } }));
        }}
      />
      {ready ? (
        <Result params={params} divisors={divisors} />
      ) : (
        <section class="panel" aria-label="Nothing to compare yet" data-panel="compare-none">
          <div class="panel-message explanation">
            <h2>{same ? "Both sides are the same" : typeof divisors === "string" ? "What to divide by is not clear" : "Choose what to compare"}</h2>
            <p>
              {same
                ? "Choose another workload for B, or say how much earlier B is: then it is one workload at two times."
                : typeof divisors === "string"
                  ? divisors
                  : "Two workloads over the same time, or one at two times. Divide by a counter of requests to see what one request costs on either side."}
            </p>
          </div>
        </section>
      )}
    </>
  );
}

function Result({ params, divisors }: { params: CompareParams; divisors: Divisors | undefined }) {
  const { interval, value, error, stale } = useCompared(params, divisors);
  const nodes = ofKind(useStore(useSession().view).filters, "node");
  const marks = usePairMarks({ workloads: [params.a], filters: nodes }, { workloads: [params.b], filters: nodes }, params.offset);
  const shaped = useMemo(() => {
    if (!value) return undefined;
    const rates = divisors && value.rates ? { divisor: divisors.a, ...value.rates } : undefined;
    return shape(value.sides, params.offset, value.step, rates);
  }, [value]);
  if (!value || !shaped) {
    return (
      <section class="panel" aria-label="Comparison" aria-busy={!error}>
        <div class="panel-message" role={error ? "alert" : undefined}>
          <p>{error?.message ?? "Asking for both sides…"}</p>
          {error && <p class="advice">{error.advice}</p>}
        </div>
      </section>
    );
  }
  const names = sideNames(params);
  const most = shaped.rows.filter((row) => row.verdict === "most");
  const charts = shaped.rows.filter((row) => row.whole || row.verdict === "most");
  const missing = missingRates(params, divisors, value);
  return (
    <>
      <section class="panel" aria-labelledby="ratios-head" data-panel="ratios" data-stale={stale ? "" : undefined} data-state="ready">
        <header class="ratios-head">
          <h2 id="ratios-head">{verdict(most, shaped.rows, divisors)}</h2>
          <p class="page-note">{explain(params, interval, divisors, value.step)}</p>
        </header>
        {error && <p class="panel-notice">{error.message} What is shown is older.</p>}
        {missing.map((line) => (
          <p key={line} class="panel-notice">
            {line}
          </p>
        ))}
        {shaped.rows.length === 0 ? (
          <p class="panel-message">Nothing was measured of either in this time range.</p>
        ) : (
          <RatioTable rows={shaped.rows} names={names} per={divisors?.a.noun} />
        )}
        {shaped.leftOut > 0 && <p class="page-note">{shaped.leftOut} parts that make less than 1 % of their panel on both sides are left out.</p>}
      </section>
      <div class="grid grid-threes">
        {charts.map((row) => (
          <PairChart key={row.id} row={row} times={value.times} interval={interval} names={names} per={divisors?.a.noun ?? ""} marks={marks} />
        ))}
      </div>
    </>
  );
}

function sideNames({ a, b, offset }: CompareParams): [string, string] {
  return [a, offset > 0 ? `${b}, ${formatSpan(offset)} earlier` : b];
}

function verdict(most: readonly Row[], rows: readonly Row[], divisors: Divisors | undefined): string {
  const measure = divisors ? `Per ${divisors.a.noun}, ` : "";
  if (most.length > 0) return sentence(`${measure}what differs most: ${listWords(most.map((row) => row.title))}.`);
  const judged = rows.some((row) => row.verdict === "within");
  return judged ? sentence(`${measure}nothing differs by more than it spreads.`) : "Too little was measured to say what differs.";
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function explain({ offset }: CompareParams, { from, to }: Interval, divisors: Divisors | undefined, step: number): string {
  const time = offset > 0 ? `; B is ${formatSpan(offset)} earlier, drawn on the time of A` : "";
  const divided = divisors ? ` Rates are divided point by point; levels, such as memory, are not.` : "";
  return (
    `Median, quartiles and number of points over ${formatSpan(to - from)}, a point for each ${formatSpan(step)}${time}.${divided} ` +
    "The ratio is that of the medians, its interval that of the quartiles. What differs has quartiles that lie apart."
  );
}

/** Says why there are no figures where there was nothing to divide by. */
function missingRates({ a, b, per, perB }: CompareParams, divisors: Divisors | undefined, { rates }: Compared): string[] {
  if (!divisors || !rates) return [];
  const none = (values: readonly (number | null)[]): boolean => values.every((v) => v === null || v <= 0);
  const lines: string[] = [];
  if (none(rates.a)) lines.push(`There was none of ${divisors.a.noun.replace(/^100 (of )?/, "")} to divide A by in this time range.`);
  if (none(rates.b)) lines.push(`There was none of ${divisors.b.noun.replace(/^100 (of )?/, "")} to divide B by in this time range.`);
  const counter = per !== "" && perB === "" && !/^(cpu|switch|call:|teescope_|sgx_workload_)/.test(per);
  if (counter && a !== b) lines.push("Both sides are divided by the same counter. If each has a server of its own, tell them apart by matchers, such as {server=\"a\"}, and give that of B too.");
  return lines;
}
