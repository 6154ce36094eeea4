// SPDX-License-Identifier: Apache-2.0

// Which threads of a workload cross the boundary of its enclaves, and which call follows which. The agent on this machine
// reports the current state. It is not stored, because the number of threads has no bound.
import { useRef } from "preact/hooks";
import type { Threads } from "../api/threads";
import { useSession } from "../lib/session";
import { useStore } from "../lib/store";
import { formatValue } from "../lib/units";
import { useNear, useRequest, useShown } from "../panels/use-data";
import { crossingRows, describePair } from "./boundary-rows";

export function Boundary({ name }: { name: string }) {
  const session = useSession();
  const { live } = useStore(session.view);
  const { interval } = useShown();
  const [element, near] = useNear();
  const enabled = live && near && session.recorded !== true;
  const { value, error } = useRequest((s, signal) => s.client.threads(name, signal), name, String(interval.to), enabled);
  const last = useRef<{ before?: Threads | undefined; now?: Threads | undefined }>({});
  if (value !== last.current.now) last.current = { before: last.current.now, now: value };
  // After an error the last answer is not shown. It is kept, because rates are computed from it and the next one.
  const before = last.current.before;
  const now = error ? undefined : last.current.now;
  const rows = now ? crossingRows(before, now) : [];
  return (
    <section ref={(e: HTMLElement | null) => { element.current = e; }} data-panel="boundary" data-state={now ? "ready" : error ? "error" : "none"}>
      {live && error && <p class="page-note">The threads at the enclave boundary are not known now: {error.message}</p>}
      {live && now && rows.length + now.pairs.length === 0 && (
        <p class="page-note">
          To see which threads of {name} cross, and which call follows which, select it with --watch, or watch it for a limited time.
        </p>
      )}
      {live && rows.length > 0 && (
        <>
          <h2>Threads at the enclave boundary, now</h2>
          <div class="table-scroll" tabIndex={0} role="group" aria-label="Crossings of threads, table">
            <table>
              <thead>
                <tr>
                  <th scope="col">Thread</th>
                  {["EENTER", "EEXIT", "AEX"].map((title) => <th key={title} scope="col" class="numeric">{title}</th>)}
                  <th scope="col">Source</th>
                </tr>
              </thead>
              <tbody>
                {rows.map((r) => (
                  <tr key={r.id}>
                    <th scope="row">{r.name}</th>
                    {[r.eenter, r.eexit, r.aex].map((v, i) => <td key={i} class="numeric">{formatValue(v, "per_second")}</td>)}
                    <td class="text">{r.source}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </>
      )}
      {live && now && now.pairs.length > 0 && <PairTable now={now} threads={rows.length > 0} />}
    </section>
  );
}

function PairTable({ now, threads }: { now: Threads; threads: boolean }) {
  return (
    <>
      <h2>Which call follows which</h2>
      <p class="page-note">
        Since the calls are timed. The advice is that of sgx-perf; it needs 100 calls.
        {!threads && " Crossings of its threads are not counted now: above the budget calls are sampled."}
        {now.left_out > 0 && ` ${now.left_out} rarer rows are left out.`}
      </p>
      <div class="table-scroll" tabIndex={0} role="group" aria-label="Pairs of calls, table">
        <table>
          <thead>
            <tr>
              <th scope="col">Calls</th>
              <th scope="col" class="numeric">Times</th>
              <th scope="col" class="numeric">Of</th>
              <th scope="col" class="numeric">Mean time</th>
              <th scope="col">Advice</th>
            </tr>
          </thead>
          <tbody>
            {now.pairs.map((p) => {
              const { what, advice } = describePair(p);
              return (
                <tr key={JSON.stringify([p.kind, p.from, p.to])}>
                  <th scope="row">{what}</th>
                  <td class="numeric">{formatValue(p.n, "count")}</td>
                  <td class="numeric">{formatValue(p.of, "count")}</td>
                  <td class="numeric">{formatValue(p.mean_seconds, "seconds")}</td>
                  <td class="text">{advice}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </>
  );
}
