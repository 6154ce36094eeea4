// SPDX-License-Identifier: Apache-2.0

// Runs of teescope record: those that were pushed to the server, and files that are opened here, which are pushed too. The
// server compares what is chosen.
import { useState } from "preact/hooks";
import { useSession } from "../../lib/session";
import { formatMoment } from "../../lib/time";
import { useRequest } from "../../panels/use-data";

export function RecordedRuns() {
  const { client } = useSession();
  const [changes, setChanges] = useState(0);
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const [said, setSaid] = useState("");
  const { value, error } = useRequest((s, signal) => s.client.runs(signal), `runs ${changes}`, "", true);
  if (value === null) return null; // a server without a database keeps none
  const done = (problems: string[]): void => {
    setSaid(problems.join(" "));
    setChosen([]);
    setChanges(changes + 1);
  };
  const push = async (files: readonly File[]): Promise<void> => {
    const problems: string[] = [];
    for (const file of files) problems.push(await client.change(`runs?name=${encodeURIComponent(file.name)}`, "", file)); // the server takes one at a time
    done(problems);
  };
  const all = value ?? [];
  const url = `api/runs/comparison?format=html${chosen.map((id) => `&run=${id}`).join("")}`;
  return (
    <section class="panel runs" data-panel="runs">
      <h2>Recorded runs</h2>
      <p class="page-note">
        {error?.message} Keep one with “teescope run push”, or{" "}
        <label>
          open one{" "}
          <input
            type="file"
            multiple
            accept=".tsrun"
            onChange={(event) => {
              void push([...(event.currentTarget.files ?? [])]);
            }}
          />
        </label>{" "}
        Choose two or more to compare.
      </p>
      <p role="status">{said}</p>
      <ul class="dashes">
        {all.map(({ id, name, started, labels, repetitions }) => (
          <li key={id}>
            <label>
              <input
                type="checkbox"
                checked={chosen.includes(id)}
                onChange={(event) => {
                  setChosen(event.currentTarget.checked ? [...chosen, id] : chosen.filter((other) => other !== id));
                }}
              />
              {name}
            </label>{" "}
            <span class="aside">
              {Object.entries(labels).map((label) => `${label.join("=")}, `)}
              {formatMoment(Date.parse(started) / 1000)}, n={repetitions}
            </span>
          </li>
        ))}
      </ul>
      {chosen.length > 0 && (
        <p>
          <button
            class="plain-button"
            onClick={() => {
              void Promise.all(chosen.map((id) => client.change("runs", id))).then(done);
            }}
          >
            Delete them
          </button>
        </p>
      )}
      {chosen.length > 1 && (
        <>
          <p>
            <a href={url}>Open as a page</a>, <a href={`${url}&per_op=1`}>for each operation</a>
          </p>
          <iframe title="Comparison of runs" src={url} />
        </>
      )}
    </section>
  );
}
