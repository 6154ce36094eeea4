// SPDX-License-Identifier: Apache-2.0

// Builds the page. Only this module uses the clock, the address bar and the document directly.
import { render } from "preact";
import { Client } from "./api/client";
import { type Connection, bindHistory, createSession, type Session, SessionProvider } from "./lib/session";
import { createStore } from "./lib/store";
import { applyRememberedTheme } from "./lib/theme";
import { watchVersion } from "./lib/version";
import { startLive } from "./lib/live";
import { rememberedZone } from "./lib/zone";
import { App } from "./pages/App";
import { bindShortcuts } from "./pages/shell/actions";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/segmented.css";
import "./styles/shell.css";
import "./styles/pickers.css";
import "./styles/panels.css";
import "./styles/menu.css";
import "./styles/kinds.css";
import "./styles/overview.css";
import "./styles/findings.css";
import "./styles/workload.css";

const clock = (): number => Date.now() / 1000;

function start(root: HTMLElement): void {
  applyRememberedTheme();
  const connection = createStore<Connection>({});
  const client = new Client({
    onAnswer: (failure) => {
      // A refused query is still an answer: the server is reachable.
      const gone = failure?.kind === "unreachable" || failure?.kind === "timeout";
      connection.update((before) => (gone ? { ...before, failure } : { lastAnswer: clock() }));
    },
  });
  const session: Session = {
    ...createSession(client, connection, clock(), location.search, rememberedZone()),
    updated: watchVersion((url, init) => fetch(url, init)),
  };
  bindHistory(session, window);
  bindShortcuts(session, document);
  startLive(session, document, clock);
  root.replaceChildren(); // removes the placeholder of index.html
  render(
    <SessionProvider value={session}>
      <App />
    </SessionProvider>,
    root,
  );
}

const root = document.getElementById("app");
if (root) start(root);
