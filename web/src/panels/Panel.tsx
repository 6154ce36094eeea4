// SPDX-License-Identifier: Apache-2.0

// The frame of every panel: title, question, unit, help with the PromQL, and the states loading, empty and failed.
// Each kind gives the content.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { ApiError } from "../api/errors";
import { useSession } from "../lib/session";
import { useStore } from "../lib/store";
import { UNIT_LABEL } from "../lib/units";
import { ViewLink } from "../lib/ViewLink";
import { families } from "./families";
import { useEmptyReason } from "./empty-reason";
import { PanelMenu } from "./PanelMenu";
import { notReached } from "./reach";
import type { Empty, PanelDef } from "./types";
import { usePanel } from "./use-panel";

/** Kinds whose values contain their units. */
const UNITLESS: readonly PanelDef["kind"][] = ["table", "figure", "gauge", "box", "flame", "matrix"];

export type PanelState = "loading" | "ready" | "empty" | "error";

interface PanelProps {
  def: PanelDef;
  state: PanelState;
  error?: ApiError | undefined;
  stale?: boolean;
  /** Text after the question, such as "mean of the last minute". */
  note?: string | undefined;
  exprs: readonly string[];
  root?: { current: HTMLElement | null };
  children?: ComponentChildren;
}

export function Panel({ def, state, error, stale, note, exprs, root, children }: PanelProps) {
  const [helpOpen, setHelpOpen] = useState(false);
  const { recorded, view } = useSession();
  const unfiltered = notReached(def, useStore(view));
  const setting = usePanel(def.id);
  const headId = `panel-${def.id}`;
  const unit = UNITLESS.includes(def.kind) ? "" : UNIT_LABEL[def.unit];
  return (
    <section
      class={`panel panel-${def.kind}`}
      aria-labelledby={headId}
      aria-busy={state === "loading"}
      data-panel={def.id}
      data-state={state}
      data-stale={stale === true ? "" : undefined}
      {...(root ? { ref: root } : {})}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || event.defaultPrevented || !setting.isSet) return;
        event.preventDefault();
        setting.reset();
      }}
    >
      <header class="panel-head">
        <h3 id={headId}>{def.title}</h3>
        {unit !== "" && <p class="unit">{unit}</p>}
        <div class="panel-tools" data-no-picture>
          <PanelMenu def={def} exprs={exprs} setting={setting} />
          <button
            type="button"
            class="icon-button"
            aria-label={`About “${def.title}”`}
            aria-expanded={helpOpen}
            onClick={() => {
              setHelpOpen(!helpOpen);
            }}
          >
            ?
          </button>
        </div>
        <p class="question">
          {def.question}
          {note !== undefined && note !== "" && <span class="note"> · {note}</span>}
        </p>
        {unfiltered !== undefined && <p class="unfiltered">{unfiltered}</p>}
      </header>
      {helpOpen && (
        <div class="panel-help">
          <p>{def.help}</p>
          <p class="metrics">
            Metrics:{" "}
            {families(def).map((name, i) => (
              <span key={name}>
                {i > 0 && ", "}
                {recorded === true ? <code>{name}</code> : <a href={`docs/metrics/${name}`}>{name}</a>}
              </span>
            ))}
          </p>
          {exprs.map((expr) => (
            <code key={expr}>
              {expr}{" "}
              {recorded !== true && (
                <ViewLink to={{ page: "explore", explore: { exprs: [expr], show: def.kind === "table" ? "table" : "chart" } }}>Explore</ViewLink>
              )}
            </code>
          ))}
        </div>
      )}
      {error && state !== "error" && <p class="panel-notice">{error.message} The findings shown are older.</p>}
      <div class="panel-body">
        {state === "ready" && children}
        {state === "loading" && <p class="panel-message loading">Loading data…</p>}
        {state === "empty" && (
          <div class="panel-message">
            <WhyEmpty empty={def.empty} />
          </div>
        )}
        {state === "error" && error && (
          <div class="panel-message" role="alert">
            <p>{error.message}</p>
            <p class="advice">{error.advice}</p>
          </div>
        )}
      </div>
      {recorded === true && exprs.length > 0 && (
        <details data-no-picture>
          <summary>PromQL</summary>
          {exprs.map((expr) => (
            <code key={expr}>{expr}</code>
          ))}
        </details>
      )}
    </section>
  );
}

/** Says why there is no data, and what would change that. */
export function WhyEmpty({ empty }: { empty: Empty }) {
  const reason = useEmptyReason(empty.probe);
  return (
    <>
      <p>{empty.text}</p>
      {empty.flag !== undefined && (
        <p class="advice">
          Start teescope with <code>{empty.flag}</code> to collect this data.
        </p>
      )}
      {reason !== undefined && <p class="advice">{reason}</p>}
    </>
  );
}

/** Returns the state of a panel from its loaded data. */
export function panelState(loaded: { value?: unknown; error?: ApiError | undefined }, isEmpty: boolean): PanelState {
  if (loaded.value !== undefined) return isEmpty ? "empty" : "ready";
  return loaded.error ? "error" : "loading";
}
