// SPDX-License-Identifier: Apache-2.0

// Resources of containers, and how near they are to their limits. Without containers there is one explanation instead
// of many empty charts.
import { fillTemplate } from "../lib/promql";
import { useSession } from "../lib/session";
import { useStore } from "../lib/store";
import { formatValue } from "../lib/units";
import { AnyPanel } from "../panels/AnyPanel";
import { CONTAINER_TABLE, CONTAINERS } from "../panels/dashboards/containers";
import { MINUTE, useRequest, useInstant, useShown } from "../panels/use-data";
import { Sections } from "./Sections";

export function Containers() {
  const view = useStore(useSession().view);
  const { interval, ...filling } = useShown();
  const selector = fillTemplate('container_last_seen{name!="",$nodes}', { ...filling, step: MINUTE });
  const seen = useRequest(
    (s, signal) => s.client.labelValues("id", selector, interval.from, interval.to, signal),
    `${selector} ${view.range} ${view.fixed?.from ?? ""} ${view.fixed?.to ?? ""}`,
    String(interval.to),
    true,
  );
  if (seen.value?.length === 0) return <NoContainers />;
  return (
    <>
      <LeftOut />
      <AnyPanel def={CONTAINER_TABLE} />
      <Sections sections={CONTAINERS} />
    </>
  );
}

/**
 * Reports containers beyond the maximum number of rows. Otherwise a missing row would look like a missing container.
 */
function LeftOut() {
  const loaded = useInstant(['sum(teescope_containers{state="left_out",$nodes}) > 0'], true);
  const count = loaded.value?.[0]?.[0]?.value[1];
  if (count === undefined) return null;
  return (
    <p class="advice" data-panel="left-out">
      {formatValue(count, "count")} {count === 1 ? "container has" : "containers have"} no series, because the limit of containers is reached.
      Their use is included in the totals of the machine only.
    </p>
  );
}

function NoContainers() {
  const loaded = useInstant(['max(teescope_collector_success{collector="container",$nodes})'], true);
  const [samples] = loaded.value ?? [];
  const success = samples?.[0]?.value[1];
  return (
    <section class="panel" aria-labelledby="no-containers" data-panel="no-containers">
      <div class="panel-message explanation">
        <h2 id="no-containers">No container was seen in this time range</h2>
        <p>
          Containers of Docker, containerd, CRI-O, podman, nerdctl, LXC and systemd-nspawn are recognised by the names of
          their control groups.
        </p>
        {samples && success !== 1 && (
          <p class="advice">
            {success === undefined
              ? "The collector “container” has not reported, so containers would not be seen."
              : "The collector “container” failed at the last scrape, so containers would not be seen. The log has the reason."}
          </p>
        )}
      </div>
    </section>
  );
}
