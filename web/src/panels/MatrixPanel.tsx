// SPDX-License-Identifier: Apache-2.0

// The kind "matrix": current values by pair of source and target. It is a table, so that it can be read without its
// shades.
import { useMemo } from "preact/hooks";
import { fillTemplate, onNode } from "../lib/promql";
import { formatValue } from "../lib/units";
import { toMatrix } from "./matrix";
import { Panel, panelState } from "./Panel";
import type { MatrixDef } from "./types";
import { MINUTE, useInstant, useNear, useShown } from "./use-data";

/** Maximum number of rows, and of columns. Others are folded. */
const MOST = 12;

export function MatrixPanel({ def }: { def: MatrixDef }) {
  const [root, near] = useNear();
  const shown = useShown();
  const [row, column, node] = def.keys;
  const [{ expr, unit }] = def.columns;
  const loaded = useInstant([expr], near);
  const matrix = useMemo(() => {
    const pairs = (loaded.value?.[0] ?? []).map(({ metric, value }) => {
      const name = (label: string): string => onNode(metric[label] ?? "(no name)", shown.several ? metric[node.label] : undefined);
      return { row: name(row.label), column: name(column.label), value: value[1] };
    });
    return toMatrix(pairs, MOST);
  }, [loaded.value, shown.several, def]);
  return (
    <Panel
      def={def}
      state={panelState(loaded, matrix.rows.length === 0)}
      error={loaded.error}
      stale={loaded.stale}
      note="mean of the last minute"
      exprs={[fillTemplate(expr, { ...shown, step: MINUTE })]}
      root={root}
    >
      <div class="table-scroll" tabIndex={0} role="group" aria-label={`${def.title}, table`}>
        <table class="matrix">
          <thead>
            <tr>
              <th scope="col">
                {row.title} ↓ {column.title} →
              </th>
              {matrix.columns.map((name) => (
                <th key={name} scope="col" class="numeric" title={name}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {matrix.rows.map((name, i) => (
              <tr key={name}>
                <th scope="row" title={name}>
                  {name}
                </th>
                {matrix.columns.map((other, k) => {
                  const value = matrix.cells[i]?.[k] ?? 0;
                  return (
                    <td key={other} class={value > 0 ? "numeric" : "numeric none"} ref={shade(value / matrix.greatest)}>
                      {formatValue(value, unit)}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

/**
 * Shades a cell through the DOM, because the page's policy forbids style attributes. The square root makes small
 * values visible.
 */
function shade(share: number): (element: HTMLElement | null) => void {
  return (element) => {
    element?.style.setProperty("--share", `${(45 * Math.sqrt(share)).toFixed(1)}%`);
  };
}
