// SPDX-License-Identifier: Apache-2.0

// Every metric of both sides: median, quartiles, number of points, the ratio of the medians, and whether the
// difference exceeds the spread.
import { ABSENT, formatValue } from "../../lib/units";
import type { Spread } from "../../lib/spread";
import { formatRatio, type Row, type Verdict } from "./shape";

const WORD: Readonly<Record<Verdict, string>> = {
  most: "differs most",
  apart: "differs",
  "only-a": "only in A",
  "only-b": "only in B",
  within: "within the spread",
  few: "too few points",
};

export function RatioTable({ rows, names, per }: { rows: readonly Row[]; names: readonly [string, string]; per: string | undefined }) {
  return (
    <div class="table-scroll" tabIndex={0} role="group" aria-label="Ratios, table">
      <table class="ratios">
        <thead>
          <tr>
            <th scope="col">Metric</th>
            <th scope="col" class="numeric">B/A</th>
            <th scope="col">Verdict</th>
            <th scope="col" class="numeric">A: {names[0]}</th>
            <th scope="col" class="numeric">B: {names[1]}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.id} data-row={row.id} data-verdict={row.verdict}>
              <th scope="row">
                {row.title}
                {per !== undefined && !row.divided && <span class="aside"> not divided</span>}
              </th>
              <td class="numeric">
                <strong>{row.ratio ? formatRatio(row.ratio.value) : ABSENT}</strong>
                {row.ratio && (
                  <small>
                    {formatRatio(row.ratio.low)} to {formatRatio(row.ratio.high)}
                  </small>
                )}
              </td>
              <td>
                <span class={row.verdict === "most" ? "mark warn" : row.verdict === "within" || row.verdict === "few" ? "aside" : "mark"}>
                  {WORD[row.verdict]}
                </span>
              </td>
              <Side row={row} spread={row.spreadA} />
              <Side row={row} spread={row.spreadB} />
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Side({ row, spread }: { row: Row; spread: Spread | undefined }) {
  return (
    <td class="numeric">
      {formatValue(spread?.median, row.unit)}
      {spread && (
        <small>
          {formatValue(spread.q1, row.unit)} to {formatValue(spread.q3, row.unit)}, n {spread.n}
        </small>
      )}
    </td>
  );
}
