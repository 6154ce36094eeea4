// SPDX-License-Identifier: Apache-2.0

// All machines: their TEEs, protected memory against need, the enclaves that cost most, and which pod fits where. A node filter adds
// the pods of that machine.
import type { ComponentChildren } from "preact";
import type { FleetView, Pod, Range } from "../api/fleet";
import { ofKind } from "../lib/filters";
import { useSession } from "../lib/session";
import { useStore } from "../lib/store";
import { ABSENT, formatValue, type Unit } from "../lib/units";
import { oneWorkload } from "../lib/url";
import { ViewLink } from "../lib/ViewLink";
import { useRequest, useShown } from "../panels/use-data";

/** Formats a range. Without an upper end it is at least its lower one. */
function span(range: Range | undefined, unit: Unit): string {
  if (!range) return ABSENT;
  const low = formatValue(range.low, unit);
  if (range.high === undefined) return `≥ ${low}`;
  const high = formatValue(range.high, unit);
  return low === high ? low : `${low} to ${high}`;
}

export function Fleet() {
  const session = useSession();
  const view = useStore(session.view);
  const { interval } = useShown();
  const { pod = "", onto = "" } = view.move ?? {};
  const [node = ""] = ofKind(view.filters, "node").filter((f) => !f.regex).map((f) => f.text);
  const params = { ...(node !== "" && { node }), ...(pod !== "" && onto !== "" && { pod, to: onto }) };
  const { value, error } = useRequest((s, signal) => s.client.fleet(params, signal), `fleet ${JSON.stringify(params)}`, String(Math.floor(interval.to / 10)), true);
  return (
    <>
      <WhatIf view={value} pod={pod} onto={onto} />
      {error && <p class="panel-notice" role="alert">{error.message} {error.advice}</p>}
      {value ? <Answer value={value} node={node} /> : !error && <section class="panel" data-panel="fleet" data-state="loading"><p class="panel-message">Loading…</p></section>}
    </>
  );
}

function WhatIf({ view, pod, onto }: { view: FleetView | undefined; pod: string; onto: string }) {
  const session = useSession();
  const field = (label: string, key: "pod" | "onto", value: string, choices: readonly string[]): ComponentChildren => (
    <label class="field">
      {label}
      <input
        list={`fleet-${key}`}
        value={value}
        onChange={(event) => {
          const { value: text } = event.currentTarget;
          session.view.update((v) => ({ ...v, move: { pod, onto, [key]: text.trim() } }));
        }}
      />
      <datalist id={`fleet-${key}`}>{[...new Set(choices)].map((c) => <option key={c} value={c} />)}</datalist>
    </label>
  );
  const answer = view?.what_if;
  return (
    <section class="panel" data-panel="what-if" aria-label="What if">
      <h3>Move a pod</h3>
      <div class="compare-form">
        {field("Pod", "pod", pod, (view ? [...view.pods, ...view.hottest] : []).map((p) => `${p.name}@${p.node}`))}
        {field("To node", "onto", onto, view?.nodes.map((n) => n.name) ?? [])}
      </div>
      {answer && (
        <div role="status">
          <p>
            Does {answer.pod} fit on {answer.to.node}? <strong>{answer.fits}</strong>
            {answer.notes.map((note) => `; ${note}`)}
          </p>
          {[answer.from, answer.to].map((c) => (
            <p key={c.node}>
              {c.node}: pressure {span(c.pressure_before, "ratio")} before, {span(c.pressure_after, "ratio")} after
            </p>
          ))}
          {answer.evictions.length > 0 && <p>Evictions that may end:</p>}
          {answer.evictions.map((e, i) => <p key={i}>{e.workload} loses pages to {e.by}: {formatValue(e.pages_per_second, "per_second")}</p>)}
        </div>
      )}
    </section>
  );
}

interface TableProps {
  title: string;
  head: readonly string[];
  rows: readonly (readonly ComponentChildren[])[];
  more?: number;
}

/** The first column names the row. */
function Table({ title, head, rows, more = 0 }: TableProps) {
  if (rows.length === 0) return null;
  return (
    <section class="panel" data-panel={title} aria-label={title}>
      <h3>{title}</h3>
      <div class="table-scroll" tabIndex={0} role="group" aria-label={title}>
        <table>
          <thead>
            <tr>{head.map((h, i) => <th key={i} scope="col">{h}</th>)}</tr>
          </thead>
          <tbody>
            {rows.map(([first, ...cells], i) => (
              <tr key={i}>
                <th scope="row">{first}</th>
                {cells.map((cell, j) => <td key={j}>{cell}</td>)}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {more > 0 && <p class="page-note">{more} more</p>}
    </section>
  );
}

function Answer({ value, node }: { value: FleetView; node: string }) {
  const { left_out: left, placement } = value;
  const bytes = (v: number | undefined): string => formatValue(v, "bytes");
  const rate = (v: number | undefined): string => formatValue(v, "per_second");
  return (
    <>
      <Table title="Nodes by TEE" head={["TEE", "Nodes", "EPC", "Used"]} rows={value.tees.map((g) => [g.tee, g.nodes, bytes(g.epc_bytes), bytes(g.epc_used_bytes)])} />
      <Table
        title="Nodes"
        head={["Node", "TEE", "EPC", "Used", "Requested", "Working sets", "Pressure", "Evicted", "Pods", "Version"]}
        rows={value.nodes.map((n) => [
          <NodeLink name={n.name} />,
          n.silent ? <span class="no">no answer</span> : n.tees ? n.tees.join(" ") || "none" : ABSENT,
          bytes(n.epc_bytes),
          bytes(n.epc_used_bytes),
          bytes(n.epc_requested_bytes),
          span(n.working_set_bytes, "bytes"),
          <span class={n.pressure && (n.pressure.high ?? n.pressure.low) > 1 ? "no" : ""}>{span(n.pressure, "ratio")}</span>,
          rate(n.evicted_pages_per_second),
          n.unmeasured > 0 ? `${n.pods}, ${n.unmeasured} unknown` : n.pods,
          n.version || ABSENT,
        ])}
        more={left.nodes}
      />
      <Pods title={`Pods on ${node}`} pods={value.pods} more={left.pods} />
      <Pods title="Most expensive enclaves" pods={value.hottest} more={0} />
      <Table
        title="Who evicts whom"
        head={["Loses pages", "Takes them", "Node", "Pages"]}
        rows={value.evictions.map((e) => [<WorkloadLink name={e.workload} node={e.node} />, e.by, e.node, rate(e.pages_per_second)])}
        more={left.evictions}
      />
      {placement.crowded + placement.unjudged > 0 && (
        <p class="page-note">
          {placement.crowded > 0 ? `Moves relieve ${placement.relieved} of ${placement.crowded} full nodes` : "No node is known to be full"}
          {placement.unjudged > 0 && `; not known of ${placement.unjudged} more`}
        </p>
      )}
      <Table
        title="Moves"
        head={["Pod", "Node", "Working set", "What if"]}
        rows={placement.moves.map((m) => [m.pod, m.from, bytes(m.bytes), <MoveLink pod={`${m.pod}@${m.from}`} onto={m.to} />])}
        more={left.moves}
      />
      <Table
        title="Where pods fit"
        head={["Pod", "Node", "Working set", "Others with room", "Not known", "What if"]}
        rows={placement.fits.map((f) => [f.pod, f.node, span(f.working_set_bytes, "bytes"), f.nodes, f.unknown, f.room && <MoveLink pod={`${f.pod}@${f.node}`} onto={f.room} />])}
        more={left.fits}
      />
      {placement.columns.length > 0 && (
        <Table
          title="Pressure with each pod on each node"
          head={["Pod", ...placement.columns]}
          rows={placement.fits.map((f) => [f.pod, ...f.cells.map((c) => <span class={c.fits === "no" ? "no" : ""}>{c.fits} {span(c.pressure, "ratio")}</span>)])}
          more={left.fits}
        />
      )}
      {left.columns > 0 && <p class="page-note">{left.columns} more nodes</p>}
      <Table
        title="Causes"
        head={["Cause", "Severity", "Nodes", "Findings", "Cores"]}
        rows={value.causes.map((c) => [
          c.title, c.severity, c.machines, c.findings, span(c.saved_cores_high > 0 ? { low: c.saved_cores_low, high: c.saved_cores_high } : undefined, "cores"),
        ])}
        more={left.causes}
      />
      <Table title="Versions" head={["Version", "Number"]} rows={value.versions.map((v) => [v.version, v.nodes])} />
      {value.problems.length > 0 && <ul class="dashes" data-panel="unknown">{value.problems.map((p, i) => <li key={i}>{p.error}</li>)}</ul>}
    </>
  );
}

function Pods({ title, pods, more }: { title: string; pods: readonly Pod[]; more: number }) {
  return (
    <Table
      title={title}
      head={["Pod", "Node", "Resident", "Working set", "Loaded back", "Exits", "Cost, cores"]}
      rows={pods.map((p) => [
        <WorkloadLink name={p.workloads[0] ?? p.name} text={p.name} node={p.node} />,
        p.node,
        formatValue(p.resident_bytes, "bytes"),
        span(p.working_set_bytes, "bytes"),
        formatValue(p.loaded_back_pages_per_second, "per_second"),
        formatValue(p.exits_per_second, "per_second"),
        span(p.cost_cores, "cores"),
      ])}
      more={more}
    />
  );
}

function NodeLink({ name }: { name: string }) {
  return <ViewLink to={{ filters: [{ kind: "node", text: name, regex: false }] }}>{name}</ViewLink>;
}

function WorkloadLink({ name, node, text = name }: { name: string; node: string; text?: string }) {
  return <ViewLink to={oneWorkload({ filters: [] }, name, node)}>{text}</ViewLink>;
}

function MoveLink({ pod, onto }: { pod: string; onto: string }) {
  return <ViewLink to={{ move: { pod, onto } }}>try {onto}</ViewLink>;
}
