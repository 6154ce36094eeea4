// SPDX-License-Identifier: Apache-2.0

// The dashboards that users keep: a list, or one of them with its panels.
import { useState } from "preact/hooks";
import type { Board } from "../api/dashboards";
import { useSession } from "../lib/session";
import { useStore } from "../lib/store";
import { formatMoment } from "../lib/time";
import { ViewLink } from "../lib/ViewLink";
import { useRequest } from "../panels/use-data";
import { asApiError } from "../api/errors";
import { Result } from "./explore/Result";

export function Dashboards() {
  const session = useSession();
  const { board: id } = useStore(session.view);
  const [changes, setChanges] = useState(0);
  const { value, error } = useRequest((s, signal) => s.client.boards(signal), `boards ${changes}`, "", true);
  const again = (): void => {
    setChanges((before) => before + 1);
  };
  const one = value?.find((board) => board.id === id);
  if (one) return <One key={`${one.id} ${one.version}`} board={one} changed={again} />;
  return (
    <section class="panel" aria-labelledby="boards-head" data-panel="boards" data-state={value ? "ready" : error ? "error" : "loading"}>
      <h2 id="boards-head">Dashboards</h2>
      <p class="page-note">
        {id !== undefined && value && `There is no dashboard ${id}: it was deleted, or the address is wrong. `}
        Everybody who may open this page sees them. To make one, run a query in <ViewLink to={{ page: "explore" }}>Explore</ViewLink> and choose “Keep on a dashboard”.
      </p>
      {!value && <p class="page-note">{error?.message ?? "Loading…"}</p>}
      <ul class="dashes">
        {(value ?? []).map(({ id: of, title, panels }) => (
          <li key={of}>
            <ViewLink to={{ board: of }}>{title}</ViewLink> <span class="aside">{`${panels.length} ${panels.length === 1 ? "panel" : "panels"}`}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function One({ board, changed }: { board: Board; changed: () => void }) {
  const { client } = useSession();
  const [problem, setProblem] = useState("");
  const { id, version, title, panels } = board;
  const at = Date.parse(board.changedAt) / 1000;
  const remove = async (): Promise<void> => {
    const failed = await client.change("dashboards/own", id);
    setProblem(failed);
    if (failed === "") changed();
  };
  const without = async (index: number): Promise<void> => {
    try {
      await client.keep(id, { version, title, panels: panels.filter((_, i) => i !== index) });
      changed();
    } catch (thrown) {
      setProblem(asApiError(thrown).message);
    }
  };
  return (
    <>
      <header class="board-head" data-panel="board" data-state="ready">
        <h2>{title}</h2>
        <ViewLink to={{ board: undefined }}>All dashboards</ViewLink>
        <a href={`api/dashboards/own/${id}/grafana`} download={`teescope-own-${id}.json`}>
          For Grafana (JSON)
        </a>
        <details>
          <summary>Delete</summary>
          <button type="button" class="plain-button" onClick={() => void remove()}>
            Delete it for all users
          </button>
        </details>
        <span class="aside">
          Changed {formatMoment(at)}
          {board.changedBy !== "" && ` by ${board.changedBy}`}. The filters do not apply.
        </span>
        <span role="status">{problem}</span>
      </header>
      {panels.map((panel, i) => (
        <Result
          key={`${i} ${panel.expr}`}
          index={i}
          expr={panel.expr}
          show={panel.show}
          chosenUnit={panel.unit === "" ? "count" : panel.unit}
          title={panel.title}
          tools={
            <span class="board-tools">
              <ViewLink to={{ page: "explore", explore: { exprs: [panel.expr], show: panel.show, units: [panel.unit] } }}>Explore</ViewLink>
              {panels.length > 1 && (
                <button type="button" class="icon-button" aria-label={`Remove ${panel.title}`} onClick={() => void without(i)}>
                  ×
                </button>
              )}
            </span>
          }
        />
      ))}
    </>
  );
}
