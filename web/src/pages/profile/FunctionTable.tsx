// SPDX-License-Identifier: Apache-2.0

// The functions of a profile as a table.
import { useMemo } from "preact/hooks";
import { formatShare } from "../../lib/units";
import { type FunctionRow, type Tree, WHOLE } from "./tree";

const MOST = 100;

interface FunctionTableProps {
  tree: Tree;
  rows: readonly FunctionRow[];
  marked: Uint8Array | undefined;
  value: (value: number) => string;
  onFunction: (frame: number) => void;
}

export function FunctionTable({ tree, rows, marked, value, onFunction }: FunctionTableProps) {
  const whole = tree.total[WHOLE] ?? 1;
  const found = useMemo(() => (marked ? rows.filter((r) => marked[r.frame] === 1) : rows), [rows, marked]);
  return (
    <>
      <div class="table-scroll functions" tabIndex={0} role="group" aria-label="Functions, table">
        <table>
          <thead>
            <tr>
              <th scope="col">Function</th>
              {["Self", "Share", "Total", "Share of total"].map((title) => (
                <th key={title} scope="col" class="numeric">
                  {title}
                </th>
              ))}
              <th scope="col">Library</th>
            </tr>
          </thead>
          <tbody>
            {found.slice(0, MOST).map((r) => (
              <tr key={r.frame}>
                <th scope="row">
                  <button
                    type="button"
                    class="link-button"
                    title="Show its callers and what it calls"
                    onClick={() => {
                      onFunction(r.frame);
                    }}
                  >
                    {tree.table[r.frame]?.name}
                  </button>
                </th>
                <td class="numeric">{value(r.self)}</td>
                <td class="numeric">{formatShare(r.self / whole)}</td>
                <td class="numeric">{value(r.total)}</td>
                <td class="numeric">{formatShare(r.total / whole)}</td>
                <td class="text">{tree.table[r.frame]?.library}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {found.length > MOST && <p class="page-note">{found.length - MOST} more have less of their own. The search finds them.</p>}
    </>
  );
}
