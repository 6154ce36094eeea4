// SPDX-License-Identifier: Apache-2.0

// A panel that cannot have data, as one line: its title, the reason, and a button that switches the data on where the agent
// allows that.
import { useState } from "preact/hooks";
import { useSession } from "../lib/session";
import { useStore } from "../lib/store";
import { formatSpan } from "../lib/time";
import { WhyEmpty } from "../panels/Panel";
import type { PanelDef } from "../panels/types";
import { useControl } from "./use-control";
import { switchable } from "./workload-facts";

const SECONDS = 600;

export function Folded({ def }: { def: PanelDef }) {
  return (
    <div class="folded" data-panel={def.id} data-state="empty">
      <h3>{def.title}</h3>
      <WhyEmpty empty={def.empty} />
      {def.empty.switch && <SwitchOn kind={def.empty.switch} title={def.title} />}
    </div>
  );
}

function SwitchOn({ kind, title }: { kind: "timing" | "watch"; title: string }) {
  const session = useSession();
  const { workloads } = useStore(session.view);
  const names = useStore(session.nodes)?.names ?? [];
  const [said, setSaid] = useState("");
  const { value } = useControl(0);
  const change = value && switchable(value, kind, workloads, names, SECONDS);
  if (!change) return null;
  return (
    <>
      <button
        type="button"
        class="plain-button"
        aria-label={`Measure “${title}”`}
        onClick={() => {
          void session.client.change("control", "", change).then((failed) => {
            setSaid(failed || "Switched on.");
          });
        }}
      >
        Measure for {formatSpan(change.seconds)}
      </button>
      <span role="status">{said}</span>
    </>
  );
}
