// SPDX-License-Identifier: Apache-2.0

// Two workloads, or two times of one, on the same axes, optionally divided by the same work. The whole state is in
// the URL.
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
import { areSeveral, chosenAt, type NodeWorkload, workloadId, workloadName, withNode, sideA, sideB, undecided } from "./compare/node-workloads";
import { RecordedRuns } from "./compare/RecordedRuns";
import { RatioTable } from "./compare/RatioTable";
import { type Row, shape } from "./compare/shape";
import { type Compared, type Divisors, useCompared } from "./compare/use-compared";
import { useWhere } from "./compare/use-where";
import "../styles/compare.css";

/**
 * Returns what is compared. The filter provides values that were not chosen here. An earlier time without a second workload
 * compares the same workload.
 */
function chosen(view: ViewState): CompareParams {
  const params = view.compare ?? NO_COMPARE;
  const a = params.a === "" ? (view.workloads[0] ?? "") : params.a;
  if (params.b !== "") return { ...params, a };
  if (params.offset > 0) return { ...params, a, b: a, nodeB: params.nodeA };
  return { ...params, a, b: view.workloads.find((name) => name !== a) ?? "" };
}

/** Returns the divisors of both sides, or what is wrong with them. */
function divisorsOf({ per, perB }: CompareParams): Divisors | undefined | string {
  const a = parseDivisor(per);
  const b = parseDivisor(perB === "" ? per : perB);
  for (const side of [a, b]) if (typeof side === "string") return side;
  return a && b ? { a: a as Divisor, b: b as Divisor } : undefined;
}

export function Compare() {
  const session = useSession();
  const view = useStore(session.view);
  const written = chosen(view);
  const where = useWhere(written.offset);
  const candidates = where.value ?? [];
  const params = withNodes(written, candidates);
  const divisors = divisorsOf(params);
  const open = [sideA(params), sideB(params)].find((side) => undecided(candidates, side).length > 0);
  const same = params.a !== "" && workloadId(sideA(params)) === workloadId(sideB(params)) && params.offset === 0;
  const known = where.value !== undefined || where.error !== undefined;
  const ready = known && params.a !== "" && params.b !== "" && !same && !open && typeof divisors !== "string";
  const [head, text] = nothingYet(same, open, typeof divisors === "string" ? divisors : undefined);
  return (
    <>
      <CompareForm
        params={params}
        where={where}
        problem={typeof divisors === "string" ? divisors : undefined}
        onChange={(change) => {
          session.view.update((v) => ({ ...v, compare: { ...chosen(v), ...change } }));
        }}
      />
      {ready ? (
        <Result params={params} several={areSeveral(candidates)} divisors={divisors} />
      ) : (
        <section class="panel" aria-label="Nothing to compare yet" data-panel="compare-none">
          <div class="panel-message explanation">
            <h2>{head}</h2>
            <p>{text}</p>
          </div>
        </section>
      )}
      <RecordedRuns />
    </>
  );
}

/** Adds the machine of each side where there is only one. */
function withNodes(params: CompareParams, candidates: readonly NodeWorkload[]): CompareParams {
  return { ...params, nodeA: withNode(candidates, sideA(params)).node, nodeB: withNode(candidates, sideB(params)).node };
}

/** Returns why there is no comparison, and what to do. */
function nothingYet(same: boolean, open: NodeWorkload | undefined, problem: string | undefined): [string, string] {
  if (same) return ["A and B are the same", "Choose another workload for B, or enter how much earlier B is to compare one workload at two times."];
  if (open) return [`On which node is ${open.workload}?`, "Several machines have a workload of that name. Choose one of them."];
  if (problem !== undefined) return ["The divisor is not valid", problem];
  return [
    "Choose what to compare",
    "Two workloads over the same time, or one at two times. Divide by a counter of requests to see what one request costs on either side.",
  ];
}

interface ResultProps {
  params: CompareParams;
  several: boolean;
  divisors: Divisors | undefined;
}

function Result({ params, several, divisors }: ResultProps) {
  const { interval, value, error, stale } = useCompared(params, divisors);
  const nodes = ofKind(useStore(useSession().view).filters, "node");
  const marks = usePairMarks(chosenAt(sideA(params), nodes), chosenAt(sideB(params), nodes), params.offset);
  const shaped = useMemo(() => {
    if (!value) return undefined;
    const rates = divisors && value.rates ? { divisor: divisors.a, ...value.rates } : undefined;
    return shape(value.sides, params.offset, value.step, rates);
  }, [value]);
  if (!value || !shaped) {
    return (
      <section class="panel" aria-label="Comparison" aria-busy={!error}>
        <div class="panel-message" role={error ? "alert" : undefined}>
          <p>{error?.message ?? "Loading both sides…"}</p>
          {error && <p class="advice">{error.advice}</p>}
        </div>
      </section>
    );
  }
  const names = sideNames(params, several);
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
        {error && <p class="panel-notice">{error.message} The findings shown are older.</p>}
        {missing.map((line) => (
          <p key={line} class="panel-notice">
            {line}
          </p>
        ))}
        {shaped.rows.length === 0 ? (
          <p class="panel-message">Neither side has data in this time range.</p>
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

function sideNames(params: CompareParams, several: boolean): [string, string] {
  const { offset } = params;
  const [a, b] = [workloadName(sideA(params), several), workloadName(sideB(params), several)];
  return [a, offset > 0 ? `${b}, ${formatSpan(offset)} earlier` : b];
}

function verdict(most: readonly Row[], rows: readonly Row[], divisors: Divisors | undefined): string {
  const measure = divisors ? `Per ${divisors.a.noun}, ` : "";
  if (most.length > 0) return sentence(`${measure}what differs most: ${listWords(most.map((row) => row.title))}.`);
  const judged = rows.some((row) => row.verdict === "within");
  return judged ? sentence(`${measure}no difference is larger than the spread of the values.`) : "There is not enough data to compare.";
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function explain({ offset }: CompareParams, { from, to }: Interval, divisors: Divisors | undefined, step: number): string {
  const time = offset > 0 ? `; B is ${formatSpan(offset)} earlier, drawn on the time of A` : "";
  const divided = divisors ? ` Rates are divided point by point; levels, such as memory, are not.` : "";
  return (
    `Median, quartiles and number of points over ${formatSpan(to - from)}, a point for each ${formatSpan(step)}${time}.${divided} ` +
    "The ratio is computed from the medians, its interval from the quartiles. Rows differ if their ranges between the quartiles do not overlap."
  );
}

/** Explains missing values where a divisor has no data. */
function missingRates({ a, b, per, perB }: CompareParams, divisors: Divisors | undefined, { rates }: Compared): string[] {
  if (!divisors || !rates) return [];
  const none = (values: readonly (number | null)[]): boolean => values.every((v) => v === null || v <= 0);
  const lines: string[] = [];
  if (none(rates.a)) lines.push(`A cannot be divided: there is no data of ${divisors.a.noun.replace(/^100 (of )?/, "")} in this time range.`);
  if (none(rates.b)) lines.push(`B cannot be divided: there is no data of ${divisors.b.noun.replace(/^100 (of )?/, "")} in this time range.`);
  const counter = per !== "" && perB === "" && !/^(cpu|switch|call:|teescope_|sgx_workload_)/.test(per);
  if (counter && a !== b) lines.push("Both sides are divided by the same counter. For a server each, add matchers such as {server=\"a\"} and enter that of B too.");
  return lines;
}
