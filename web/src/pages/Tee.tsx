// SPDX-License-Identifier: Apache-2.0

// Enclaves, virtual machines and confidential machines: one part for each kind that is there. Without any there is one
// explanation.
import { fillTemplate } from "../lib/promql";
import { useSession } from "../lib/session";
import { useStore } from "../lib/store";
import { AnyPanel } from "../panels/AnyPanel";
import { TEE, TEE_TABLES } from "../panels/dashboards/tee";
import { CONFIDENTIAL, VIRTUAL } from "../panels/dashboards/virtual";
import { MINUTE, useRequest, useInstant, useShown } from "../panels/use-data";
import { Sections } from "./Sections";

/** Values of a label that series have in the shown interval; undefined while they are loaded. */
function useValues(label: string, metric: string): readonly string[] | undefined {
  const view = useStore(useSession().view);
  const { interval, ...filling } = useShown();
  const selector = fillTemplate(`${metric}{$nodes}`, { ...filling, step: MINUTE });
  return useRequest(
    (s, signal) => s.client.labelValues(label, selector, interval.from, interval.to, signal),
    `${selector} ${view.range} ${view.fixed?.from ?? ""} ${view.fixed?.to ?? ""}`,
    String(interval.to),
    true,
  ).value;
}

export function Tee() {
  const enclaves = useValues("source", "sgx_source_info");
  const machines = useValues("vm", "teescope_vm_info");
  const guests = useValues("tee", "teescope_guest_info");
  const others = [machines?.length ? VIRTUAL : undefined, guests?.length ? CONFIDENTIAL : undefined].filter((s) => s !== undefined);
  if (enclaves?.length === 0 && machines?.length === 0 && guests?.length === 0) return <NoTee />;
  return (
    <>
      {enclaves?.length !== 0 && (
        <>
          {TEE_TABLES.map((def) => (
            <AnyPanel key={def.id} def={def} />
          ))}
          <Sections sections={TEE} />
        </>
      )}
      <Sections sections={others} />
    </>
  );
}

function NoTee() {
  const loaded = useInstant(["max by (tee) (teescope_tee_available{$nodes})"], true);
  const there = (loaded.value?.[0] ?? []).filter((s) => s.value[1] === 1).map((s) => (s.metric["tee"] ?? "").toUpperCase());
  return (
    <section class="panel" aria-labelledby="no-tee" data-panel="no-tee">
      <div class="panel-message explanation">
        <h2 id="no-tee">{there.length > 0 ? "No enclave memory on this machine" : "No TEE on this machine"}</h2>
        <p>
          This page shows which workload holds SGX enclave memory, which waits for it, and how often enclaves are entered and
          left. {there.length > 0 && `This machine has ${there.join(", ")}, which has no such enclave memory. `}
        </p>
        <p>
          <code>teescope check</code> shows what this machine supports, what is missing and how to fix it.{" "}
          <code>teescope demo sgx</code> shows this page on a virtual SGX machine.
        </p>
      </div>
    </section>
  );
}
