// SPDX-License-Identifier: Apache-2.0

// Where in the code the time goes: threads over time, a flame graph, the callers and callees of a function, and a table of
// functions. All are of the chosen workload, or of all.
import { useMemo, useState } from "preact/hooks";
import { keptProfiles, profileTree, type ProfileTree, type ThreadTimes, threadTimes } from "../api/profiles";
import type { ProfileParams, ProfilePart } from "../lib/page-params";
import { useSession } from "../lib/session";
import { useStore } from "../lib/store";
import { formatClock, formatMoment } from "../lib/time";
import { formatShare, formatValue } from "../lib/units";
import { useRequest, useShown } from "../panels/use-data";
import { changeStep } from "./profile/colours";
import { FlameCanvas } from "./profile/FlameCanvas";
import { FunctionTable } from "./profile/FunctionTable";
import { chosenIn, fullColumn, isCounted, partOf } from "./profile/part";
import { ThreadCanvas, threadName } from "./profile/ThreadCanvas";
import { useSearch } from "./profile/search";
import { buildTree, callees, callers, functions, type Tree, WHOLE } from "./profile/tree";
import "../styles/profile.css";

/** Profiles are of a minute, so a live page asks twice in one. */
const PERIOD = 30;
const NONE = "This server keeps no profiles. “teescope up” keeps those of its machine.";
/** The events of profiles, as the server names them. */
const CPU = "cpu";
const EVENTS: Readonly<Record<string, string>> = { [CPU]: "CPU time", syscalls: "System calls", ocalls: "OCALLs", ecalls: "ECALLs", aex: "AEXs", "off-cpu": "Waits" };
/** The limit of the server. */
const MOST_FILES = 4;

export function Profile() {
  const session = useSession();
  const view = useStore(session.view);
  const { interval } = useShown();
  const [workload] = view.workloads;
  // The address has the part of kept profiles. It cannot have opened files.
  const [opened, setOpened] = useState<ProfilePart | undefined>(undefined);
  // A span is chosen in what is shown, so the threads stay as they are while one is.
  const [held, setHeld] = useState<{ key: string; times: ThreadTimes } | undefined>(undefined);
  const [files, setFiles] = useState<readonly File[]>([]);
  const [file, setFile] = useState(0);
  const [weighed, setWeighed] = useState(""); // the value that is shown of files
  const recorded = files.length > 0;
  const of = workload ?? "";
  const kept = view.profile?.of === of ? view.profile : undefined;
  const part = recorded ? opened : kept?.part;
  const base = recorded || part ? undefined : kept?.base;
  const event = recorded ? CPU : (view.profile?.event ?? CPU);
  const value = recorded ? weighed : (view.profile?.value ?? "");
  const several = view.workloads.length > 1;
  const range = { from: Math.floor(interval.from), to: Math.ceil(interval.to) };
  const span = view.fixed ? `${range.from} ${range.to}` : view.range;
  const tick = String(Math.floor(interval.to / PERIOD));
  const key = recorded ? files.map((f) => `${f.name} ${f.lastModified} ${f.size}`).join() : `${of} ${event} ${span}`;
  const asked = (from: number, to: number): URLSearchParams => {
    const params = new URLSearchParams({ start: String(from), end: String(to) });
    if (workload !== undefined && !recorded) params.set("workload", workload);
    if (event !== CPU) params.set("event", event);
    return params;
  };
  const weigh = (params: URLSearchParams): URLSearchParams => {
    if (value !== "") params.set("value", value);
    return params;
  };
  const all = (): URLSearchParams => weigh(recorded ? new URLSearchParams() : asked(range.from, range.to));
  const threads = useRequest(
    ({ client }, signal) => client.answer("api/profiles/threads", all(), threadTimes, signal, files), `${key} ${value}`, recorded ? "" : tick, !several || recorded,
  );
  const there = useRequest(
    ({ client }, signal) => client.answer("api/profiles", new URLSearchParams({ start: String(range.from), end: String(range.to) }), keptProfiles, signal), span, tick,
    !recorded && Boolean(threads.value), // a server that keeps no profiles does not have this part of the API
  );
  const events = recorded ? [] : Object.keys(EVENTS).filter((e) => e === CPU || e === event || (there.value?.events[e] ?? 0) > 0);
  const times = (part && held?.key === key ? held.times : threads.value) ?? undefined;
  const none = threads.value === null;
  const change = (next: Partial<ProfileParams>): void => {
    session.view.update((v) => ({ ...v, profile: { of, event: v.profile?.event, value: v.profile?.value, ...next } }));
  };
  const choose = (next: ProfilePart | undefined): void => {
    if (recorded) setOpened(next);
    else change({ part: next });
  };
  const show = (next: string): void => {
    if (recorded) setWeighed(next);
    else change({ value: next, part, base });
  };
  const query = (): URLSearchParams => {
    const params = part ? weigh(asked(part.from, part.to)) : all();
    if (part && part.tid !== "") {
      params.append("label", `tid:${part.tid}`);
      if (part.pid !== "") params.append("label", `pid:${part.pid}`);
    }
    if (recorded) params.set("file", String(file));
    if (base) {
      const { from, to } = base === "before" ? { from: 2 * range.from - range.to, to: range.from } : base;
      params.set("base.start", String(from));
      params.set("base.end", String(to));
    }
    return params;
  };
  const tree = useRequest(
    ({ client }, signal) => client.answer("api/profiles/tree", query(), profileTree, signal, files),
    `${key} ${file} ${JSON.stringify([value, part, base])}`,
    part || recorded ? "" : tick,
    !several || recorded,
  );
  if (several && !recorded) return <p class="page-note">This page shows one workload, or all: the filter selects {view.workloads.join(", ")}.</p>;
  return (
    <>
      <section class="panel" aria-labelledby="threads-head" data-panel="threads" data-state={times || none ? "ready" : threads.error ? "error" : "loading"}>
        <h2 id="threads-head">Threads of {recorded ? files.map((f) => f.name).join(" and ") : (workload ?? "all workloads")}</h2>
        {events.length > 1 && (
          <p class="chart-bar" role="group" aria-label="Events">
            {events.map((e) => (
              <button
                key={e}
                type="button"
                class="chip"
                aria-pressed={e === event}
                onClick={() => {
                  change({ event: e === CPU ? undefined : e, value: undefined });
                }}
              >
                {EVENTS[e] ?? e}
              </button>
            ))}
          </p>
        )}
        {times && times.threads.length > 0 && (
          <ThreadCanvas
            times={times}
            chosen={part && chosenIn(times, part)}
            onChoose={(next) => {
              setHeld({ key, times });
              choose(next && partOf(times, next));
            }}
          />
        )}
        {times && <p class="page-note">{threadNote(times, !recorded && events.length === 1)}</p>}
        {!times && <p class="page-note">{threads.error ? threads.error.message : none ? NONE : "Loading…"}</p>}
        {!none && (
          <p class="page-note">
            <label>
              Open recordings of “teescope profile record”, also of several events{" "}
              <input
                type="file"
                multiple
                onChange={(event) => {
                  setOpened(undefined);
                  setFile(0);
                  setWeighed("");
                  setFiles([...(event.currentTarget.files ?? [])].slice(0, MOST_FILES));
                }}
              />
            </label>
          </p>
        )}
      </section>
      <section class="panel" aria-labelledby="flame-head" data-panel="flame" data-state={tree.value !== undefined ? "ready" : tree.error ? "error" : "loading"} data-stale={tree.stale ? "" : undefined}>
        <h2 id="flame-head">Flame graph{part ? ` of ${partText(part, times)}` : ""}</h2>
        <p class="chart-bar">
          {part ? (
            <button
              type="button"
              class="plain-button"
              onClick={() => {
                choose(undefined);
              }}
            >
              Show all threads and times
            </button>
          ) : recorded ? null : (
            <button
              type="button"
              class="chip"
              aria-pressed={base !== undefined}
              onClick={() => {
                change({ base: base ? undefined : "before" });
              }}
            >
              What changed since {base && base !== "before" ? `${formatMoment(base.from)} to ${formatClock(base.to)}` : "as much time before"}
            </button>
          )}
          {files.length > 1 &&
            files.map((f, i) => (
              <button
                key={f.name}
                type="button"
                class="chip"
                aria-pressed={i === file}
                onClick={() => {
                  setFile(i);
                  setWeighed("");
                }}
              >
                {f.name}
              </button>
            ))}
          {tree.value &&
            tree.value.counts !== "" &&
            [tree.value.counts, tree.value.times].map((type, i) => (
              <button
                key={type}
                type="button"
                class="chip"
                aria-pressed={type === tree.value?.type}
                onClick={() => {
                  show(type);
                }}
              >
                {i === 0 ? "By number" : "By time"}
              </button>
            ))}
        </p>
        {tree.error && <p class="page-note">{tree.error.message}</p>}
        {tree.value && tree.value.total === 0 && <p class="page-note">{tree.value.notes.join("; ")}</p>}
        {tree.value && tree.value.total > 0 && <Graphs key={key} profile={tree.value} />}
        {!tree.value && !tree.error && <p class="page-note">{tree.value === null ? NONE : "Loading…"}</p>}
      </section>
    </>
  );
}

function partText({ pid, tid, from, to }: ProfilePart, times: ThreadTimes | undefined): string {
  const thread = times?.threads.find((t) => t.tid === tid && t.pid === pid);
  return `${thread ? threadName(thread) : tid === "" ? "all threads" : `thread ${tid}`}, ${formatClock(from)} to ${formatClock(to)}`;
}

function threadNote(times: ThreadTimes, alone: boolean): string {
  const { threads, left_out, untimed, width } = times;
  const parts = [`A column is ${formatValue(width, "seconds")}. Drag over a span, or click a thread, to see its code.`];
  if (isCounted(times)) parts.push(`The highest column has ${formatValue(fullColumn(times), "count")}.`);
  if (threads.length === 0) parts[0] = "No sample of this time and workload says when it was taken.";
  if (alone) parts.push("Only profiles of CPU time are kept for this time. “teescope control profile --event off-cpu” records waits with their reasons for a while.");
  if (left_out > 0) parts.push(`${left_out} threads with less time are left out.`);
  if (untimed > 0) parts.push(`${untimed} profiles have no times, so they are not here.`);
  return parts.join(" ");
}

function Graphs({ profile }: { profile: ProfileTree }) {
  const [search, setSearch] = useState("");
  const [picked, setPicked] = useState<string | undefined>(undefined);
  const tree = useMemo(() => buildTree(profile.table, profile.total, profile), [profile]);
  const rows = useMemo(() => functions(tree), [tree]);
  const found = useSearch(tree, search);
  const marked = found?.marked;
  const differs = profile.before.length > 0;
  const change = useMemo(() => (differs ? { before: profile.before, after: profile.after } : undefined), [profile]);
  const frame = profile.table.findIndex((f) => `${f.name}\n${f.library}` === picked);
  const sandwich = useMemo(() => (frame >= 0 ? { callers: callers(tree, frame), callees: callees(tree, frame) } : undefined), [tree, frame]);
  const value = (v: number): string => (differs ? formatShare(v / profile.total) : amount(v, profile.unit));
  const pick = (index: number): void => {
    const f = profile.table[index];
    setPicked(f && `${f.name}\n${f.library}`);
  };
  const say = (of: Tree, node: number): string => {
    const function_ = of.table[of.frame[node] ?? 0];
    const total = of.total[node] ?? 0;
    if (node === WHOLE) return `all: ${value(total)}`;
    const library = function_?.library ? `, ${function_.library}` : "";
    if (of === tree && change) {
      const [before, after] = [(change.before[node - 1] ?? 0) / 1e9, (change.after[node - 1] ?? 0) / 1e9];
      const words = changeStep(before, after) === 0 ? "about the same" : after > before ? "more" : "less";
      return `${function_?.name ?? ""}: ${formatShare(before)} before, ${formatShare(after)} now, ${words}${library}`;
    }
    return `${function_?.name ?? ""}: ${value(total)}, ${formatShare(total / (of.total[WHOLE] ?? 1))}, self ${value(of.self[node] ?? 0)}${library}`;
  };
  return (
    <>
      <div class="chart-bar">
        <label>
          Search{" "}
          <input
            type="search"
            class="search"
            value={search}
            autoComplete="off"
            onInput={(event) => {
              setSearch(event.currentTarget.value);
            }}
          />
        </label>
        <span role="status">{found && `${formatShare(found.value / profile.total)} of ${profile.unit === "nanoseconds" ? "the time" : "all"}`}</span>
        <span class="at">{differs ? "Orange has a larger share than before, and blue a smaller one" : "Colours are libraries; orange is the kernel, grey has no name"}</span>
      </div>
      <FlameCanvas tree={tree} title="Flame graph" say={(node) => say(tree, node)} marked={marked} change={change} onFunction={pick} />
      {sandwich && (
        <div class="sandwich" data-panel="sandwich">
          <h3>
            {profile.table[frame]?.name}{" "}
            <button
              type="button"
              class="plain-button"
              onClick={() => {
                setPicked(undefined);
              }}
            >
              Close
            </button>
          </h3>
          <h4>Callers: who calls it, the nearest first</h4>
          <FlameCanvas tree={sandwich.callers} title="Callers" say={(node) => say(sandwich.callers, node)} marked={marked} onFunction={pick} />
          <h4>Callees: what it calls</h4>
          <FlameCanvas tree={sandwich.callees} title="Callees" say={(node) => say(sandwich.callees, node)} marked={marked} onFunction={pick} />
        </div>
      )}
      <h3>Functions</h3>
      <FunctionTable tree={tree} rows={rows} marked={marked} value={value} onFunction={pick} />
      <p class="page-note">
        {profile.title}: {differs ? "shares" : `${amount(profile.total, profile.unit)} of ${profile.type}`}
        {profile.samples > 0 && `, n=${Math.round(profile.samples)}`}
        {profile.least > 1 && `; frames below ${formatShare(profile.least / profile.total)} are left out`}
        {profile.notes.map((note) => `; ${note}`)}
      </p>
    </>
  );
}

function amount(value: number, unit: string): string {
  return unit === "nanoseconds" ? formatValue(value / 1e9, "seconds") : `${formatValue(value, "count")} ${unit === "count" ? "" : unit}`.trim();
}
