// SPDX-License-Identifier: Apache-2.0

// Enclaves, virtual machines, confidential machines, GPUs and vsock: one part for each kind that is there. Without any there is
// one explanation.
import { fillTemplate } from "../lib/promql";
import { useSession } from "../lib/session";
import { useStore } from "../lib/store";
import { AnyPanel } from "../panels/AnyPanel";
import { TEE, TEE_TABLES } from "../panels/dashboards/tee";
import { MINUTE, useRequest, useInstant, useShown } from "../panels/use-data";
import { Sections } from "./Sections";
import { partsAmong, TEE_NAMES } from "./tee-parts";

/** Names of the metrics that have series in the shown interval; undefined while they are loaded. */
function useNames(): readonly string[] | undefined {
  const view = useStore(useSession().view);
  const { interval, ...filling } = useShown();
  const selector = fillTemplate(TEE_NAMES, { ...filling, step: MINUTE });
  return useRequest(
    (s, signal) => s.client.labelValues("__name__", selector, interval.from, interval.to, signal),
    `${selector} ${view.range} ${view.fixed?.from ?? ""} ${view.fixed?.to ?? ""}`,
    String(interval.to),
    true,
  ).value;
}

export function Tee() {
  const names = useNames();
  if (names?.length === 0) return <NoTee />;
  const { enclaves, parts } = partsAmong(names);
  return (
    <>
      {enclaves && (
        <>
          {TEE_TABLES.map((def) => (
            <AnyPanel key={def.id} def={def} />
          ))}
          <Sections sections={TEE} />
        </>
      )}
      <Sections sections={parts} />
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
