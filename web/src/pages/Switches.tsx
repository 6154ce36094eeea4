// SPDX-License-Identifier: Apache-2.0

// Switches watching, timing and exact counting on for a while, or a probe off, shows what is on, and ends it. The server passes this on to
// the agent that it runs, and to no other one.
import { useState } from "preact/hooks";
import type { Change } from "../api/control";
import { useSession } from "../lib/session";
import { formatClock, formatSpan, zoneName } from "../lib/time";
import { ViewLink } from "../lib/ViewLink";
import { claimed, stated } from "../lib/words";
import { useControl } from "./use-control";
import { switchesRefusal } from "./workload-facts";

const LENGTHS = [60, 600, 3600];
/** A reason that fits into the agent's limit of bytes in any language. */
const MOST_REASON = 64;

const KINDS: readonly { kind: string; title: string; about: string }[] = [
  { kind: "watch", title: "Watch", about: "Counts each process of this workload by itself, with the errors of its calls" },
  { kind: "timing", title: "Time calls", about: "Measures the time in system calls, for all workloads of the machine" },
  { kind: "exact", title: "Count exactly", about: "Counts every event of the machine, at any cost" },
  { kind: "profile", title: "Profile", about: "Samples the code of all processes, 99 times a second and CPU, or at each 64th event" },
];

/** What a profile samples the code of. The first is sent as nothing, as older agents expect. */
const EVENTS: readonly { event: string; title: string }[] = [
  { event: "", title: "CPU time" },
  { event: "syscalls", title: "system calls" },
  { event: "off-cpu", title: "waits" },
  { event: "ocalls", title: "OCALLs" },
  { event: "ecalls", title: "ECALLs" },
  { event: "aex", title: "asynchronous exits" },
];

/** The fields of a change besides its time and its reason. */
export function switched(kind: string, name: string, event: string, probe: string): { kind: string; rule?: string; event?: string } {
  const rule = { watch: `workload=${name}`, pause: probe }[kind];
  return { kind, ...(rule !== undefined && { rule }), ...(kind === "profile" && event !== "" && { event }) };
}

export function Switches({ name, node }: { name: string; node: string }) {
  const session = useSession();
  const [done, setDone] = useState("");
  const [sent, setSent] = useState(0);
  const { value, error } = useControl(sent);
  const change = async (id: string, added?: object): Promise<void> => {
    setDone("");
    const failed = await session.client.change("control", id, added);
    setDone(failed || (added ? "Begun." : "Ended."));
    setSent((before) => before + 1);
  };
  const why = value === undefined ? (error?.message ?? "Loading…") : switchesRefusal(value, name, node);
  return (
    <section class="identity switches" aria-labelledby="switches-head" data-panel="switches" data-state={value === undefined ? "loading" : "ready"}>
      <h2 id="switches-head">Measure more for a while</h2>
      {why !== "" && <p class="page-note">{why}</p>}
      {value && why === "" && <Form name={name} longest={value.max_seconds} probes={value.probes} begin={(added) => void change("", added)} />}
      {value && value.changes.length > 0 && (
        <ul>
          {value.changes.map((one) => (
            <On key={one.id} one={one} stop={() => void change(one.id)} />
          ))}
        </ul>
      )}
      {value && <FlameLink name={name} />}
      <p role="status">{done}</p>
    </section>
  );
}

/** Leads to the code that took the CPU time of the shown time range. */
function FlameLink({ name }: { name: string }) {
  return (
    <p class="page-note">
      <ViewLink to={{ page: "profile", profile: undefined }}>Its code and threads</ViewLink>
      {", or "}
      <ViewLink to={{ page: "profile", profile: { of: name, base: "before" } }}>what changed in its code</ViewLink>
      , if profiles were taken
    </p>
  );
}

function Form({ name, longest, probes, begin }: { name: string; longest: number; probes: readonly string[]; begin: (added: object) => void }) {
  const lengths = LENGTHS.filter((seconds) => seconds <= longest);
  const start = (kind: string, form: HTMLFormElement | null): void => {
    const entered = new FormData(form ?? undefined);
    const value = (field: string): string => {
      const text = entered.get(field);
      return typeof text === "string" ? text : "";
    };
    begin({ ...switched(kind, name, value("event"), value("probe")), seconds: Number(value("seconds")), reason: value("reason") });
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
      }}
    >
      <label>
        For{" "}
        <select name="seconds" defaultValue={String(lengths[1] ?? lengths[0] ?? longest)}>
          {(lengths.length > 0 ? lengths : [longest]).map((seconds) => (
            <option key={seconds} value={seconds}>
              {seconds < 120 ? formatSpan(seconds) : `${seconds / 60} min`}
            </option>
          ))}
        </select>
      </label>
      <input name="reason" maxLength={MOST_REASON} placeholder="Reason (optional)" aria-label="Reason" />
      {KINDS.map(({ kind, title, about }) => (
        <button
          key={kind}
          type="button"
          class="plain-button"
          title={about}
          onClick={(event) => {
            start(kind, event.currentTarget.form);
          }}
        >
          {title}
        </button>
      ))}
      <label>
        of{" "}
        <select name="event">
          {EVENTS.map(({ event, title }) => (
            <option key={event} value={event}>
              {title}
            </option>
          ))}
        </select>
      </label>
      <p class="aside">Each costs more than counting alone. Only Watch is for this workload alone.</p>
      {probes.length > 0 && (
        <p>
          <label>
            Probe{" "}
            <select name="probe">
              {probes.map((probe) => (
                <option key={probe} value={probe}>
                  {probe}
                </option>
              ))}
            </select>
          </label>{" "}
          <button
            type="button"
            class="plain-button"
            title="Detaches the probe on the whole machine. Its metrics are absent meanwhile"
            onClick={(event) => {
              start("pause", event.currentTarget.form);
            }}
          >
            Switch off
          </button>
        </p>
      )}
    </form>
  );
}

/** One thing that is on. */
function On({ one, stop }: { one: Change; stop: () => void }) {
  const end = Date.parse(one.end) / 1000;
  const title = one.kind === "pause" ? "Probe off:" : (KINDS.find(({ kind }) => kind === one.kind)?.title ?? one.kind);
  const what = `${title} ${one.rule}${one.event}`.trim();
  const by = claimed(one.by, one.by_verified);
  const until = `until ${formatClock(end)} ${zoneName(end)}, ${formatSpan(one.seconds_left)} left`;
  return (
    <li data-kind={one.kind}>
      <strong>{what}</strong> {stated([until, by && `by ${by}`], one.reason)}{" "}
      <button type="button" class="plain-button" aria-label={`Stop: ${what}`} onClick={stop}>
        Stop
      </button>
    </li>
  );
}
