// SPDX-License-Identifier: Apache-2.0

// Keeps the queries as panels of a dashboard: a new one, or one that exists.
import { useState } from "preact/hooks";
import type { BoardPanel } from "../../api/dashboards";
import { asApiError } from "../../api/errors";
import { inferUnit } from "../../lib/infer-unit";
import type { ExploreShow } from "../../lib/page-params";
import { useSession } from "../../lib/session";
import type { Unit } from "../../lib/units";
import { useRequest } from "../../panels/use-data";

interface KeepProps {
  exprs: readonly string[];
  units: readonly (Unit | "")[];
  show: ExploreShow;
}

/** Limit of the server for a title, in bytes, for letters of any language. */
const LONGEST_TITLE = 33;

export function Keep(props: KeepProps) {
  const [open, setOpen] = useState(false);
  return (
    <details
      class="panel"
      data-panel="keep"
      onToggle={(event) => {
        setOpen(event.currentTarget.open);
      }}
    >
      <summary>Keep on a dashboard</summary>
      {open && <KeepForm {...props} />}
    </details>
  );
}

function KeepForm({ exprs, units, show }: KeepProps) {
  const session = useSession();
  const [problem, setProblem] = useState("");
  const [into, setInto] = useState("");
  const boards = useRequest((s, signal) => s.client.boards(signal), "boards", "", true);
  const before = boards.value?.find(({ id }) => id === into);
  const keep = async (entered: FormData): Promise<void> => {
    const texts = (name: string): string[] => entered.getAll(name).filter((value) => typeof value === "string");
    const titles = texts("panel");
    const added = exprs.map((expr, i): BoardPanel => ({ title: titles[i] ?? "", expr, show, unit: (units[i] || inferUnit(expr)) ?? "" }));
    try {
      const kept = await session.client.keep(into, {
        ...(before && { version: before.version }),
        title: before?.title ?? texts("title")[0] ?? "",
        panels: [...(before?.panels ?? []), ...added],
      });
      session.view.update((v) => ({ ...v, page: "dashboards", board: kept.id }));
    } catch (thrown) {
      setProblem(asApiError(thrown).message);
    }
  };
  return (
    <form
      class="keep"
      onSubmit={(event) => {
        event.preventDefault();
        void keep(new FormData(event.currentTarget));
      }}
    >
      <select
        aria-label="Dashboard"
        value={into}
        onChange={(event) => {
          setInto(event.currentTarget.value);
        }}
      >
        <option value="">A new dashboard</option>
        {(boards.value ?? []).map(({ id, title }) => (
          <option key={id} value={id}>
            {title}
          </option>
        ))}
      </select>
      {into === "" && <input name="title" required maxLength={LONGEST_TITLE} placeholder="Title of the dashboard" aria-label="Title of the dashboard" />}
      {exprs.map((expr, i) => (
        <input key={expr} name="panel" required maxLength={LONGEST_TITLE} placeholder={`Title of query ${i + 1}`} aria-label={`Title of query ${i + 1}`} />
      ))}
      <button class="control">Keep</button>
      <span role="status">{problem || boards.error?.message}</span>
    </form>
  );
}
