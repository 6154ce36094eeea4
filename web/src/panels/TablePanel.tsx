// SPDX-License-Identifier: Apache-2.0

// The kind "table": rows joined by labels, sortable, with optional sparklines. A row may toggle a workload in the
// filter.
import { useMemo } from "preact/hooks";
import { means, ofKind } from "../lib/filters";
import { fillTemplate, onNode } from "../lib/promql";
import { useSession } from "../lib/session";
import { useStore } from "../lib/store";
import { oneWorkload, toggleFilter, toggleWorkload } from "../lib/url";
import { formatValue } from "../lib/units";
import { ViewLink } from "../lib/ViewLink";
import { Spark } from "./charts/Spark";
import { Panel, panelState } from "./Panel";
import { loadRows, type RowSource, tableLoaders } from "./table-data";
import { formatSorting, parseSorting, pinRows, type Row, sortRows, type Sorting } from "./table-rows";
import type { TableDef } from "./types";
import { ageless, type Loaded, MINUTE, useRequest, useNear, useShown } from "./use-data";
import { usePanel } from "./use-panel";

export function TablePanel({ def }: { def: TableDef }) {
  const [root, near] = useNear();
  const shown = useShown();
  const loaded = useTable(def, near);
  const rows = loaded.value ?? [];
  const filling = { ...shown, step: MINUTE };
  return (
    <Panel
      def={def}
      state={panelState(loaded, rows.length === 0)}
      error={loaded.error}
      stale={loaded.stale}
      exprs={def.columns.map((c) => fillTemplate(c.expr, filling))}
      root={root}
    >
      <Grid def={def} rows={rows} several={shown.several} />
    </Panel>
  );
}

/** Loads all columns of a table. Columns with sparklines have loaders of their own. */
export function useTable(def: RowSource, enabled: boolean): Loaded<Row[]> {
  const session = useSession();
  const { interval, ready, ...filling } = useShown();
  const loaders = useMemo(() => tableLoaders(def, session.client), [def, session]);
  const fixed = useStore(session.view).fixed;
  const span = fixed ? `${fixed.from}-${fixed.to}` : String(interval.to - interval.from);
  const key = [...def.columns.map((c) => fillTemplate(c.expr, { ...ageless(filling), step: MINUTE })), span].join("\n");
  return useRequest((s, signal) => loadRows(def, s.client, loaders, interval, filling, signal), key, String(interval.to), enabled && ready);
}

function Grid({ def, rows, several }: { def: TableDef; rows: readonly Row[]; several: boolean }) {
  const session = useSession();
  const view = useStore(session.view);
  const { state, set } = usePanel(def.id);
  const first = def.keys.length + (def.info?.labels.length ?? 0);
  const heads = [...def.keys, ...(def.info?.labels ?? []), ...def.columns].map((h) => h.title);
  const atFirst: Sorting = def.sortBy === undefined ? { column: 0, descending: false } : { column: first + def.sortBy, descending: true };
  const sorting = parseSorting(state.sort, heads) ?? atFirst;
  const chosen = def.filters === true ? view.workloads : [];
  const patterns = def.filters === true ? ofKind(view.filters, "workload") : [];
  // A pattern that the browser cannot evaluate selects no row here.
  const isMeant = ({ keys: [name = ""] }: Row): boolean => chosen.includes(name) || patterns.some((f) => means(f, name) === true);
  const sorted = useMemo(
    () => pinRows(sortRows(rows, sorting), isMeant),
    [rows, sorting.column, sorting.descending, chosen.join("\n"), JSON.stringify(patterns)],
  );
  const hidden = (i: number): boolean => !several && def.keys[i]?.several === true;
  return (
    <div class="table-scroll" tabIndex={0} role="group" aria-label={`${def.title}, table`}>
      <table>
        <thead>
          <tr>
            {heads.map(
              (title, i) =>
                !hidden(i) && (
                  <Head
                    key={title}
                    title={title}
                    numeric={i >= first}
                    sorting={sorting.column === i ? sorting : undefined}
                    onSort={() => {
                      const next = { column: i, descending: sorting.column === i ? !sorting.descending : i >= first };
                      const same = next.column === atFirst.column && next.descending === atFirst.descending;
                      set({ sort: same ? undefined : formatSorting(next, heads) });
                    }}
                  />
                ),
            )}
          </tr>
        </thead>
        <tbody>
          {sorted.map((row) => (
            <BodyRow
              key={row.key}
              def={def}
              row={row}
              several={several}
              meant={isMeant(row)}
              chosen={chosen.includes(row.keys[0] ?? "")}
              onToggle={() => {
                session.view.update((v) => toggleWorkload(v, row.keys[0] ?? ""));
              }}
              onToggleNode={(text) => {
                session.view.update((v) => toggleFilter(v, { kind: "node", text, regex: false }));
              }}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface HeadProps {
  title: string;
  numeric: boolean;
  sorting: Sorting | undefined;
  onSort: () => void;
}

function Head({ title, numeric, sorting, onSort }: HeadProps) {
  const order = sorting ? (sorting.descending ? "descending" : "ascending") : "none";
  return (
    <th scope="col" aria-sort={order} class={numeric ? "numeric" : ""}>
      <button type="button" onClick={onSort}>
        {title}
        <span class="arrow" aria-hidden="true">
          {sorting ? (sorting.descending ? "▾" : "▴") : ""}
        </span>
      </button>
    </th>
  );
}

interface BodyRowProps {
  def: TableDef;
  row: Row;
  several: boolean;
  /** Whether a filter of workloads matches it, by name or by pattern. */
  meant: boolean;
  /** Whether a filter names it. */
  chosen: boolean;
  onToggle: () => void;
  onToggleNode: (node: string) => void;
}

function BodyRow({ def, row, several, meant, chosen, onToggle, onToggleNode }: BodyRowProps) {
  const [title = ""] = row.keys;
  const others = row.keys.flatMap((text, i) => (i === 0 || (!several && def.keys[i]?.several === true) ? [] : [{ text, key: def.keys[i] }]));
  const node = several ? (row.keys[def.keys.findIndex((k) => k.several === true)] ?? "") : "";
  const { recorded, view } = useSession();
  return (
    <tr class={meant ? "chosen" : ""}>
      <th scope="row" title={def.name === undefined ? undefined : row.key}>
        {def.filters === true ? (
          <>
            <button type="button" class="row-switch" aria-pressed={chosen} title="Filter every chart by this workload" onClick={onToggle}>
              {title}
            </button>
            {recorded !== true && (
              <ViewLink class="row-link" to={oneWorkload(view.get(), title, node)} label={`open ${onNode(title, node)}: everything about this workload`}>
                open
              </ViewLink>
            )}
          </>
        ) : (
          title
        )}
      </th>
      {others.map(({ text, key }) => (
        <td key={key?.label} class="text" title={text}>
          {key?.several === true && def.filters === true ? (
            <button
              type="button"
              class="node-switch"
              title="Filter every chart by this node"
              onClick={() => {
                onToggleNode(text);
              }}
            >
              {text}
            </button>
          ) : (
            text
          )}
        </td>
      ))}
      {row.infos.map((text, i) => (
        <td key={i} class="text" title={text}>
          {text}
        </td>
      ))}
      {row.cells.map((cell, i) => {
        const column = def.columns[i];
        return (
          <td key={i + others.length + row.infos.length} class="numeric">
            {column?.spark === true && <Spark values={cell.past ?? []} width={56} height={16} />}
            <span class={column?.unit === "yes_no" && cell.value === 0 ? "no" : ""}>
              {formatValue(cell.value, column?.unit ?? "count")}
            </span>
          </td>
        );
      })}
    </tr>
  );
}
