// SPDX-License-Identifier: Apache-2.0

// Builds a report: the page's own components with the answers in the file. It has no clock, no server and no address
// bar.
import { render } from "preact";
import { Client } from "../api/client";
import { createSession, type Session, SessionProvider } from "../lib/session";
import { createStore } from "../lib/store";
import { Report } from "./Report";
import { nodesKey } from "../lib/view-keys";
import { nodesOf, type Recording, recordedFetch, unpack } from "./recording";
import "../styles/tokens.css";
import "../styles/base.css";
import "../styles/shell.css";
import "../styles/panels.css";
import "../styles/menu.css";
import "../styles/kinds.css";
import "../styles/overview.css";
import "../styles/findings.css";
import "../styles/report.css";

function sessionOf(r: Recording): Session {
  const client = new Client({ fetch: recordedFetch(r) });
  const session = createSession(client, createStore({}), r.to, "", "utc");
  session.view.update((view) => ({ ...view, workloads: r.workloads, fixed: { from: r.from, to: r.to }, live: false }));
  session.nodes.set({ key: nodesKey(session.view.get()), names: nodesOf(r) });
  session.server.set({ scrapeInterval: r.scrapeInterval, startedAt: r.startedAt > 0 ? r.startedAt : undefined });
  return { ...session, recorded: true };
}

/** Opens all details for printing. */
function openForPaper(): void {
  const opened: HTMLDetailsElement[] = [];
  window.addEventListener("beforeprint", () => {
    for (const one of document.querySelectorAll("details")) {
      if (one.open) continue;
      one.open = true;
      opened.push(one);
    }
  });
  window.addEventListener("afterprint", () => {
    for (const one of opened.splice(0)) one.open = false;
  });
}

async function start(root: HTMLElement, packed: string): Promise<void> {
  try {
    const recording = await unpack(packed);
    openForPaper();
    render(
      <SessionProvider value={sessionOf(recording)}>
        <Report recording={recording} />
      </SessionProvider>,
      root,
    );
  } catch (thrown) {
    const reason = thrown instanceof Error ? thrown.message : "the reason is not known";
    render(<p role="alert">This report cannot be shown: {reason}. It may have been cut; write it again, or try a newer browser.</p>, root);
  }
}

const root = document.getElementById("app");
if (root) void start(root, document.getElementById("recording")?.textContent ?? "");
