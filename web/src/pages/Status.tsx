// SPDX-License-Identifier: Apache-2.0

// The state of teescope itself: targets, collectors, probes, their cost, the build.
import type { Target } from "../api/types";
import { formatSpan } from "../lib/time";
import { formatSeconds } from "../lib/units";
import { AnyPanel } from "../panels/AnyPanel";
import { STATUS } from "../panels/dashboards/status";
import { useRequest, useShown } from "../panels/use-data";

export function Status() {
  return (
    <>
      <Targets />
      <div class="grid grid-wide">
        {STATUS.map((def) => (
          <AnyPanel key={def.id} def={def} />
        ))}
      </div>
    </>
  );
}

function Targets() {
  const { interval } = useShown();
  const loaded = useRequest((session, signal) => session.client.targets(signal), "targets", String(interval.to), true);
  return (
    <section class="panel" aria-labelledby="targets-head" data-panel="targets">
      <header class="panel-head">
        <h3 id="targets-head">Targets</h3>
        <p class="question">Which targets are scraped, and do they answer?</p>
      </header>
      {loaded.error && <p class="panel-notice">{loaded.error.message}</p>}
      {loaded.value?.length === 0 && <p class="panel-message">No target is configured.</p>}
      {loaded.value && loaded.value.length > 0 && (
        <div class="table-scroll" tabIndex={0} role="group" aria-label="Targets, table">
          <table>
            <thead>
              <tr>
                <th scope="col">Target</th>
                <th scope="col">Health</th>
                <th scope="col" class="numeric">Interval</th>
                <th scope="col" class="numeric">Last scrape</th>
                <th scope="col" class="numeric">Duration</th>
                <th scope="col">Error</th>
              </tr>
            </thead>
            <tbody>
              {loaded.value.map((target) => (
                <TargetRow key={target.scrapeUrl} target={target} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

/** Formats how long ago a scrape was. Prometheus writes the year 1 for "never". */
function ago(rfc3339: string, nowMs: number): string {
  const at = Date.parse(rfc3339);
  if (Number.isNaN(at) || at <= 0) return "never";
  return `${formatSpan(Math.max(0, (nowMs - at) / 1000))} ago`;
}

function TargetRow({ target }: { target: Target }) {
  return (
    <tr>
      <th scope="row">
        {target.labels["job"] ?? ""} <span class="aside">{target.labels["instance"] ?? target.scrapeUrl}</span>
      </th>
      <td>
        <span class={target.health === "up" ? "yes" : "no"}>{target.health}</span>
      </td>
      <td class="numeric">{target.scrapeInterval}</td>
      <td class="numeric">{ago(target.lastScrape, Date.now())}</td>
      <td class="numeric">{formatSeconds(target.lastScrapeDuration)}</td>
      <td class="text">{target.lastError === "" ? "none" : target.lastError}</td>
    </tr>
  );
}
