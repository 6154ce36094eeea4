// SPDX-License-Identifier: Apache-2.0

// The header of every page: pages, filters, time, live view, theme, help.
import { useRef } from "preact/hooks";
import { useSession } from "../../lib/session";
import { useStore } from "../../lib/store";
import { toggleTheme, useThemeName } from "../../lib/theme";
import { formatClock, zoneName } from "../../lib/time";
import { type PageId, PAGES } from "../../lib/url";
import { ViewLink } from "../../lib/ViewLink";
import { SHORTCUTS, togglePause } from "./actions";
import { FilterBar } from "./FilterBar";
import { FilterPicker } from "./FilterPicker";
import { RangePicker } from "./RangePicker";

const PAGE_TITLE: Readonly<Record<PageId, string>> = {
  overview: "Overview",
  findings: "Findings",
  tee: "TEE",
  system: "System",
  containers: "Containers",
  infrastructure: "Infrastructure",
  workload: "Workload",
  compare: "Compare",
  explore: "Explore",
  status: "Status",
  dashboards: "Dashboards",
  fleet: "Fleet",
  profile: "Profile",
};

export function Header() {
  return (
    <header class="top">
      <div class="brand">teescope</div>
      <Pages />
      <div class="controls">
        <FilterPicker />
        <RangePicker />
        <LiveSwitch />
        <ThemeSwitch />
        <Help />
      </div>
      <FilterBar />
    </header>
  );
}

function Pages() {
  const view = useStore(useSession().view);
  return (
    <nav aria-label="Pages">
      <ul>
        {PAGES.map((page) => (
          <li key={page}>
            <ViewLink to={{ page }} current={view.page === page ? "page" : undefined}>
              {PAGE_TITLE[page]}
            </ViewLink>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function LiveSwitch() {
  const session = useSession();
  const view = useStore(session.view);
  const now = useStore(session.now);
  const { failure } = useStore(session.connection);
  const state = !view.live ? "paused" : failure ? "lost" : "live";
  const text = { live: "Live", paused: "Paused", lost: "No answer" }[state];
  return (
    <button
      type="button"
      class={`control live ${state}`}
      aria-pressed={view.live}
      aria-label={`Live tail: ${text}`}
      title={view.live ? `Follows the clock; newest ${formatClock(now)} ${zoneName(now)}. Press p to pause.` : "Press p to follow the clock again."}
      onClick={() => {
        session.view.update((v) => togglePause(v, session.now.get()));
      }}
    >
      <span class="dot" aria-hidden="true" />
      <span class="text">{text}</span>
    </button>
  );
}

function ThemeSwitch() {
  const theme = useThemeName();
  const other = theme === "dark" ? "light" : "dark";
  return (
    <button type="button" id="theme-button" class="control square" aria-label={`Use the ${other} theme`} title={`Use the ${other} theme (t)`} onClick={toggleTheme}>
      <span aria-hidden="true">{theme === "dark" ? "☀" : "☾"}</span>
    </button>
  );
}

function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  return (
    <>
      <button
        type="button"
        id="help-button"
        class="control square"
        aria-label="Keys and help"
        title="Keys and help (?)"
        onClick={() => dialog.current?.showModal()}
      >
        <span aria-hidden="true">?</span>
      </button>
      <dialog ref={dialog} aria-labelledby="help-head">
        <h2 id="help-head">Keys</h2>
        <dl class="keys">
          {SHORTCUTS.map((shortcut) => (
            <div key={shortcut.does}>
              <dt>
                {shortcut.keys.map((key) => (
                  <kbd key={key}>{key}</kbd>
                ))}
              </dt>
              <dd>{shortcut.does}</dd>
            </div>
          ))}
        </dl>
        <p>
          Drag across a chart to show only that time range; Back returns. A gap in a line means that nothing was measured
          then. The address contains the whole view, so that you can share it.
        </p>
        <form method="dialog">
          <button class="plain-button">Close</button>
        </form>
      </dialog>
    </>
  );
}
