// SPDX-License-Identifier: Apache-2.0

// Everything about one workload, chosen by the filter: its identity, its findings, and every panel that can be
// filtered by workload.
import { useMemo } from "preact/hooks";
import { join, ofKind, quote } from "../lib/filters";
import { useSession } from "../lib/session";
import { useStore } from "../lib/store";
import { oneWorkload, type ViewState } from "../lib/url";
import { ViewLink } from "../lib/ViewLink";
import { nodesKey } from "../lib/view-keys";
import { NO_COMPARE } from "../lib/page-params";
import { AnyPanel } from "../panels/AnyPanel";
import { WORKLOADS } from "../panels/dashboards/overview";
import { WORKLOAD_CONTAINERS, WORKLOAD_KERNEL, WORKLOAD_TEE } from "../panels/dashboards/workload";
import { type Loaded, useRequest, useInstant, useShown } from "../panels/use-data";
import { TopFindings } from "./findings/TopFindings";
import { Boundary } from "./Boundary";
import { Sections } from "./Sections";
import { Switches } from "./Switches";
import { IDENTITY_EXPRS, readIdentity, teeSeries } from "./workload-facts";

export function Workload() {
  const view = useStore(useSession().view);
  const { workloads, filters } = view;
  const [name] = workloads;
  // A pattern may select more workloads than the named one.
  const isPattern = ofKind(filters, "workload").length > 0;
  if (name === undefined || workloads.length > 1 || isPattern) return <Chooser view={view} several={workloads} />;
  return <OnItsNode key={name} view={view} name={name} />;
}

function Chooser({ view, several }: { view: ViewState; several: readonly string[] }) {
  return (
    <>
      <section aria-labelledby="choose-head" data-panel="choose-workload">
        <h2 id="choose-head">{several.length > 1 ? "This page shows one workload" : "Choose a workload"}</h2>
        <p class="page-note">
          {several.length > 1 ? "The filter selects several: " : "This page then shows everything about it. Choose “open” in its row."}
          {several.map((name) => (
            <ViewLink key={name} class="chip" to={oneWorkload(view, name, "")}>
              {name}
            </ViewLink>
          ))}
        </p>
      </section>
      <AnyPanel def={WORKLOADS} />
    </>
  );
}

/**
 * Workloads of the same name on other machines are different ones. Where there are several machines, the user must
 * choose.
 */
function OnItsNode({ view, name }: { view: ViewState; name: string }) {
  const nodes = useSeen("instance", `teescope_workload_info{${join(`workload=${quote(name)}`, nodesKey(view))}}`);
  if (!nodes.value && !nodes.error) return <p class="page-note">Loading…</p>;
  if (!nodes.value || nodes.value.length < 2) return <One name={name} node={nodes.value?.[0] ?? ""} />;
  return (
    <>
      <section aria-labelledby="choose-head" data-panel="choose-node">
        <h2 id="choose-head">
          {name} is on {nodes.value.length} nodes
        </h2>
        <p class="page-note">
          These are different workloads. Choose one:{" "}
          {nodes.value.map((node) => (
            <ViewLink key={node} class="chip" to={oneWorkload(view, name, node)}>
              {node}
            </ViewLink>
          ))}
        </p>
      </section>
      <AnyPanel def={WORKLOADS} />
    </>
  );
}

function One({ name, node }: { name: string; node: string }) {
  const view = useStore(useSession().view);
  const nodes = nodesKey(view);
  const tee = useSeen("__name__", teeSeries(name, nodes));
  const containers = useSeen("id", `teescope_container_info{${join(`workload=${quote(name)}`, nodes)}}`);
  return (
    <>
      <Identity name={name} />
      <Switches name={name} node={node} />
      <TopFindings />
      <Sections sections={WORKLOAD_KERNEL} />
      {tee.value && (tee.value.length > 0 ? <><Sections sections={WORKLOAD_TEE} />{nodeOf(view) === "" && <Boundary name={name} />}</> : <NoTee name={name} />)}
      {containers.value && (containers.value.length > 0 ? <Sections sections={WORKLOAD_CONTAINERS} /> : <NoContainer name={name} />)}
    </>
  );
}

/** Returns the values of a label in the shown interval. */
function useSeen(label: string, match: string): Loaded<string[]> {
  const view = useStore(useSession().view);
  const { interval } = useShown();
  const range = `${view.range} ${view.fixed?.from ?? ""} ${view.fixed?.to ?? ""}`;
  return useRequest((s, signal) => s.client.labelValues(label, match, interval.from, interval.to, signal), `${match} ${range}`, String(interval.to), true);
}

function Identity({ name }: { name: string }) {
  const { interval } = useShown();
  const { view } = useSession();
  const loaded = useInstant(IDENTITY_EXPRS, true);
  const facts = useMemo(() => (loaded.value ? readIdentity(loaded.value, interval.to) : undefined), [loaded.value]);
  return (
    <section class="identity" aria-labelledby="identity-head" data-panel="identity" data-state={facts ? "ready" : "loading"}>
      <header>
        <h2 id="identity-head">{name}</h2>
        <p>
          <ViewLink to={{ page: "compare", compare: { ...NO_COMPARE, a: name, nodeA: nodeOf(view.get()) } }}>Compare it</ViewLink>
          <ViewLink to={{ workloads: [] }}>Another workload</ViewLink>
        </p>
      </header>
      {!facts && <p class="page-note">{loaded.error?.message ?? "Loading…"}</p>}
      {facts?.length === 0 && (
        <p class="page-note">
          The workload was not seen at the end of this time range: it has ended, or its name has changed.
        </p>
      )}
      {facts && facts.length > 0 && (
        <dl>
          {facts.map(({ label, value }) => (
            <div key={label}>
              <dt>{label}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
      )}
    </section>
  );
}

/** Returns the machine that the filter names, if it is only one. */
function nodeOf({ filters }: ViewState): string {
  const [first, second] = ofKind(filters, "node");
  return first && !first.regex && !second ? first.text : "";
}

function NoTee({ name }: { name: string }) {
  return (
    <section aria-labelledby="workload-no-tee" data-panel="workload-no-tee">
      <h2 id="workload-no-tee">Enclaves</h2>
      <p class="page-note">
        {name} held no enclave memory and crossed no enclave boundary in this time range, as far as teescope can measure. The page{" "}
        <ViewLink to={{ page: "tee" }}>TEE</ViewLink> shows what this machine offers.
      </p>
    </section>
  );
}

function NoContainer({ name }: { name: string }) {
  return (
    <section aria-labelledby="workload-no-container" data-panel="workload-no-container">
      <h2 id="workload-no-container">Containers and their limits</h2>
      <p class="page-note">{name} did not run in a container in this time range: no container limit applies to it.</p>
    </section>
  );
}
