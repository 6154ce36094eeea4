// SPDX-License-Identifier: Apache-2.0

// Enclaves: which workloads use the enclave memory, which wait for it, and how often the boundary is crossed. Without
// a TEE there is one explanation.
import { fillTemplate } from "../lib/promql";
import { useSession } from "../lib/session";
import { useStore } from "../lib/store";
import { AnyPanel } from "../panels/AnyPanel";
import { TEE, TEE_TABLES } from "../panels/dashboards/tee";
import { MINUTE, useRequest, useInstant, useShown } from "../panels/use-data";
import { Sections } from "./Sections";

export function Tee() {
  const view = useStore(useSession().view);
  const { interval, ...filling } = useShown();
  const selector = fillTemplate("sgx_source_info{$nodes}", { ...filling, step: MINUTE });
  const seen = useRequest(
    (s, signal) => s.client.labelValues("source", selector, interval.from, interval.to, signal),
    `${selector} ${view.range} ${view.fixed?.from ?? ""} ${view.fixed?.to ?? ""}`,
    String(interval.to),
    true,
  );
  if (seen.value?.length === 0) return <NoTee />;
  return (
    <>
      {TEE_TABLES.map((def) => (
        <AnyPanel key={def.id} def={def} />
      ))}
      <Sections sections={TEE} />
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
          The page System shows what workloads do in the kernel.
        </p>
        <p>
          <code>teescope check</code> shows what this machine supports, what is missing and how to fix it.{" "}
          <code>teescope demo sgx</code> shows this page on a virtual SGX machine.
        </p>
      </div>
    </section>
  );
}
