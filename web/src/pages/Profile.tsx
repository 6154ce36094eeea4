// SPDX-License-Identifier: Apache-2.0

// Where in the code the time goes: threads over time, a flame graph, the callers and callees of a function, and a table of
// functions. All are of the chosen workload, or of all.
import { useMemo, useState } from "preact/hooks";
import { profileTree, type ProfileTree, type ThreadTimes, threadTimes } from "../api/profiles";
import type { ProfilePart } from "../lib/page-params";
import { useSession } from "../lib/session";
import { useStore } from "../lib/store";
import { formatClock, formatMoment } from "../lib/time";
import { formatShare, formatValue } from "../lib/units";
import { useRequest, useShown } from "../panels/use-data";
import { changeStep } from "./profile/colours";
import { FlameCanvas } from "./profile/FlameCanvas";
import { FunctionTable } from "./profile/FunctionTable";
import { chosenIn, partOf } from "./profile/part";
import { ThreadCanvas, threadName } from "./profile/ThreadCanvas";
import { useSearch } from "./profile/search";
import { buildTree, callees, callers, functions, type Tree, WHOLE } from "./profile/tree";
import "../styles/profile.css";

/** Profiles are of a minute, so a live page asks twice in one. */
const PERIOD = 30;
const NONE = "This server keeps no profiles. “teescope up” keeps those of its machine.";
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
  const recorded = files.length > 0;
  const of = workload ?? "";
  const kept = view.profile?.of === of ? view.profile : undefined;
  const part = recorded ? opened : kept?.part;
  const base = recorded || part ? undefined : kept?.base;
  const several = view.workloads.length > 1;
  const range = { from: Math.floor(interval.from), to: Math.ceil(interval.to) };
  const tick = String(Math.floor(interval.to / PERIOD));
  const key = recorded ? files.map((f) => `${f.name} ${f.lastModified} ${f.size}`).join() : `${of} ${view.fixed ? `${range.from} ${range.to}` : view.range}`;
  const asked = (from: number, to: number): URLSearchParams => {
    const params = new URLSearchParams({ start: String(from), end: String(to) });
    if (workload !== undefined && !recorded) params.set("workload", workload);
    return params;
  };
  const all = (): URLSearchParams => (recorded ? new URLSearchParams() : asked(range.from, range.to));
  const threads = useRequest(({ client }, signal) => client.answer("api/profiles/threads", all(), threadTimes, signal, files), key, recorded ? "" : tick, !several || recorded);
  const times = (part && held?.key === key ? held.times : threads.value) ?? undefined;
  const none = threads.value === null;
  const choose = (next: ProfilePart | undefined): void => {
    if (recorded) setOpened(next);
    else session.view.update((v) => ({ ...v, profile: next && { of, part: next } }));
  };
  const query = (): URLSearchParams => {
    const params = part ? asked(part.from, part.to) : all();
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
    `${key} ${file} ${JSON.stringify([part, base])}`,
    part || recorded ? "" : tick,
    !several || recorded,
  );
  if (several && !recorded) return <p class="page-note">This page shows one workload, or all: the filter selects {view.workloads.join(", ")}.</p>;
  return (
    <>
      <section class="panel" aria-labelledby="threads-head" data-panel="threads" data-state={times || none ? "ready" : threads.error ? "error" : "loading"}>
        <h2 id="threads-head">Threads of {recorded ? files.map((f) => f.name).join(" and ") : (workload ?? "all workloads")}</h2>
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
        {times && <p class="page-note">{threadNote(times, recorded)}</p>}
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
                session.view.update((v) => ({ ...v, profile: base ? undefined : { of, base: "before" } }));
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
                }}
              >
                {f.name}
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

function threadNote({ threads, left_out, untimed, width }: ThreadTimes, recorded: boolean): string {
  const parts = [`A column is ${formatValue(width, "seconds")}. Drag over a span, or click a thread, to see its code.`];
  if (threads.length === 0) parts[0] = "No sample of this time and workload says when it was taken.";
  if (!recorded) parts.push("Kept profiles have CPU time only: recordings have waits with their reasons.");
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
        <span role="status">{found && `${formatShare(found.value / profile.total)} of the time`}</span>
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
