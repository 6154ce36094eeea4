// SPDX-License-Identifier: Apache-2.0

// Silences a finding, or ends its silence.
import { useState } from "preact/hooks";
import type { Finding } from "../../api/findings";
import { useSession } from "../../lib/session";
import { formatMoment } from "../../lib/time";
import { claimed, stated } from "../../lib/words";

const DAY = 86_400_000;

export function Mute({ finding }: { finding: Finding }) {
  const { client, recorded } = useSession();
  const [done, setDone] = useState("");
  const { silence, rule, workload, instance } = finding;
  const send = async (id: string, body?: object): Promise<void> => {
    setDone((await client.change("findings/silences", id, body)) || "Done. The list follows within seconds.");
  };
  const said = <span role="status">{done}</span>;
  if (silence) {
    const until = silence.endsAt && `until ${formatMoment(Date.parse(silence.endsAt) / 1000)}`;
    return (
      <p class="aside">
        {stated([silence.kind, claimed(silence.createdBy, silence.createdByVerified), until], silence.comment)}{" "}
        {!recorded && (
          <button type="button" class="plain-button" onClick={() => void send(silence.id)}>
            Unmute
          </button>
        )}
        {said}
      </p>
    );
  }
  if (recorded) return null;
  return (
    <details>
      <summary>Mute</summary>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const entered = new FormData(event.currentTarget);
          const days = Number(entered.get("days"));
          const matchers = Object.entries({ rule, workload, instance }).map(([name, value]) => ({ name, value, isRegex: false }));
          void send("", {
            kind: entered.get("kind"),
            comment: entered.get("comment"),
            matchers,
            ...(days > 0 && { endsAt: new Date(Date.now() + days * DAY).toISOString() }),
          });
        }}
      >
        <select name="kind" aria-label="Kind">
          <option>mute</option>
          <option>acknowledged</option>
          <option>works-as-intended</option>
        </select>
        <input name="comment" required maxLength={250} placeholder="Reason" aria-label="Reason" />
        {/* Preact would set "value" again with each refresh of the list, and so reset what was entered. */}
        <label>
          Days <input name="days" type="number" min="0" max="9999" step="any" defaultValue="1" />
        </label>
        <button class="plain-button">Mute</button>
        {said}
      </form>
    </details>
  );
}
