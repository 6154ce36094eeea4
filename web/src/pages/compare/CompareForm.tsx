// SPDX-License-Identifier: Apache-2.0

// The form of a comparison: two workloads, how much earlier B is, and what to divide by.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { parseDuration } from "../../lib/time";
import { quote } from "../../lib/filters";
import { type CompareParams, formatDuration } from "../../lib/page-params";
import { useSession } from "../../lib/session";
import { type Loaded, useRequest, useShown } from "../../panels/use-data";
import { areSeveral, type NodeWorkload, workloadId, workloadName, workloadOfId, sideA, sideB, undecided } from "./node-workloads";

const OFFSETS = ["1m", "5m", "15m", "30m", "1h", "3h", "6h", "12h", "1d", "7d"];

/** The divisors that the user can choose, and how each begins in the URL. */
const PERS: readonly { per: string; title: string }[] = [
  { per: "", title: "nothing: as measured" },
  { per: "cpu", title: "CPU second" },
  { per: "switch", title: "context switch" },
  { per: "call:read", title: "system call read" },
  { per: "call:write", title: "system call write" },
  { per: "call:", title: "another system call…" },
  { per: "counter", title: "a counter of the application…" },
];

interface FormProps {
  params: CompareParams;
  where: Loaded<NodeWorkload[]>;
  problem: string | undefined;
  onChange: (change: Partial<CompareParams>) => void;
}

export function CompareForm({ params, where, problem, onChange }: FormProps) {
  const candidates = where.value ?? [];
  const [offsetProblem, setOffsetProblem] = useState<string | undefined>(undefined);
  return (
    <form
      class="panel compare-form"
      aria-label="What is compared"
      data-panel="compare-form"
      onSubmit={(event) => {
        event.preventDefault();
      }}
    >
      <Field label="A">
        <Choice id="compare-a" candidates={candidates} value={sideA(params)} onChoose={({ workload, node }) => { onChange({ a: workload, nodeA: node }); }} />
      </Field>
      <Field label="B">
        <Choice id="compare-b" candidates={candidates} value={sideB(params)} onChoose={({ workload, node }) => { onChange({ b: workload, nodeB: node }); }} />
      </Field>
      <Field label="B is earlier by">
        <TextInput
          id="compare-offset"
          list="compare-offsets"
          placeholder="0: the same time"
          value={params.offset > 0 ? formatDuration(params.offset) : ""}
          onText={(text) => {
            const offset = text === "" || text === "0" ? 0 : parseDuration(text);
            setOffsetProblem(offset === undefined ? `“${text}” is not a duration. Write 10m, 1h or 1d.` : undefined);
            if (offset !== undefined) onChange({ offset });
          }}
        />
        <datalist id="compare-offsets">
          {OFFSETS.map((text) => (
            <option key={text} value={text} />
          ))}
        </datalist>
      </Field>
      <Divide params={params} onChange={onChange} />
      <button
        type="button"
        class="plain-button"
        title="Swap A and B"
        disabled={workloadId(sideA(params)) === workloadId(sideB(params))}
        onClick={() => {
          onChange({ a: params.b, nodeA: params.nodeB, b: params.a, nodeB: params.nodeA, per: params.perB === "" ? params.per : params.perB, perB: params.perB === "" ? "" : params.per });
        }}
      >
        Swap
      </button>
      {(offsetProblem ?? problem ?? where.error) !== undefined && (
        <p class="problem" role="alert">
          {offsetProblem ?? problem ?? where.error?.message}
        </p>
      )}
    </form>
  );
}

function Field({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <label class="field">
      <span>{label}</span>
      {children}
    </label>
  );
}

interface TextInputProps {
  id: string;
  list: string;
  placeholder: string;
  value: string;
  wide?: true;
  /** Called with the text once it is complete. */
  onText: (text: string) => void;
}

/** Holds unfinished text in its own state, because the page renders again with every tick of the clock. */
function TextInput({ id, list, placeholder, value, wide, onText }: TextInputProps) {
  const [draft, setDraft] = useState(value);
  useEffect(() => {
    setDraft(value);
  }, [value]);
  return (
    <input
      id={id}
      list={list}
      class={wide ? "wide" : undefined}
      placeholder={placeholder}
      value={draft}
      spellcheck={false}
      autocomplete="off"
      onInput={(event) => {
        setDraft(event.currentTarget.value);
      }}
      onChange={(event) => {
        onText(event.currentTarget.value.trim());
      }}
    />
  );
}

interface ChoiceProps {
  id: string;
  candidates: readonly NodeWorkload[];
  value: NodeWorkload;
  onChoose: (choice: NodeWorkload) => void;
}

/**
 * A chosen workload stays in the list when it is gone, so that a shared address shows it. A single machine is not
 * written into the address.
 */
function Choice({ id, candidates, value, onChoose }: ChoiceProps) {
  const several = areSeveral(candidates);
  const open = undecided(candidates, value).length > 0;
  const none = value.workload === "";
  const gone = !none && !open && !candidates.some((p) => workloadId(p) === workloadId(value));
  return (
    <select
      id={id}
      value={workloadId(value)}
      onChange={(event) => {
        const choice = workloadOfId(event.currentTarget.value);
        onChoose(several ? choice : { ...choice, node: "" });
      }}
    >
      {none && <option value={workloadId(value)}>choose…</option>}
      {open && <option value={workloadId(value)}>{value.workload}: choose a node…</option>}
      {[...candidates, ...(gone ? [value] : [])].map((choice) => (
        <option key={workloadId(choice)} value={workloadId(choice)}>
          {workloadName(choice, several || choice === value)}
        </option>
      ))}
    </select>
  );
}

function kindOf(per: string): string {
  if (PERS.some((p) => p.per === per)) return per;
  return per.startsWith("call:") ? "call:" : "counter";
}

function Divide({ params, onChange }: Pick<FormProps, "params" | "onChange">) {
  const { per } = params;
  const [picked, setPicked] = useState<string | undefined>(undefined);
  const kind = per === "" && picked !== undefined ? picked : kindOf(per);
  const twoCounters = kind === "counter" && params.a !== params.b;
  const change = (text: string): void => {
    onChange({ per: kind === "call:" && text !== "" ? `call:${text}` : text });
  };
  return (
    <>
      <Field label="Divide by">
        <select
          id="compare-per"
          value={kind}
          onChange={(event) => {
            const chosen = event.currentTarget.value;
            const open = chosen === "call:" || chosen === "counter";
            setPicked(open ? chosen : undefined);
            onChange({ per: open ? "" : chosen, perB: "" });
          }}
        >
          {PERS.map((p) => (
            <option key={p.per} value={p.per}>
              {p.title}
            </option>
          ))}
        </select>
      </Field>
      {kind === "call:" && (
        <Field label="System call">
          <Named id="compare-call" list="calls" value={per.replace(/^call:/, "")} onName={change} params={params} />
        </Field>
      )}
      {kind === "counter" && (
        <Field label={twoCounters ? "Counter, of A" : "Counter"}>
          <Named id="compare-counter" list="counters" value={per} onName={change} params={params} />
        </Field>
      )}
      {twoCounters && (
        <Field label="of B, if it is another">
          <Named id="compare-counter-b" list="counters" value={params.perB} onName={(perB) => { onChange({ perB }); }} params={params} />
        </Field>
      )}
    </>
  );
}

/** Limit of offered names. Longer lists are not usable. */
const MOST_OFFERED = 1000;

interface NamedProps {
  id: string;
  list: "calls" | "counters";
  value: string;
  onName: (name: string) => void;
  params: CompareParams;
}

/** A text input with completion from the names of the server. */
function Named({ id, list, value, onName, params }: NamedProps) {
  const { interval } = useShown();
  const session = useSession();
  const offered = useRequest(
    async (s, signal) => {
      if (list === "counters") {
        const known = await s.client.metadata(signal);
        return Object.keys(known).filter((name) => known[name]?.[0]?.type === "counter").sort();
      }
      const of = [params.a, params.b].filter((w) => w !== "").map((w) => s.client.labelValues("syscall", `teescope_syscalls_total{workload=${quote(w)}}`, interval.from - params.offset, interval.to, signal));
      return [...new Set((await Promise.all(of)).flat())].sort();
    },
    `${list} ${params.a} ${params.b}`,
    session.view.get().range,
    true,
  );
  return (
    <>
      <TextInput
        id={id}
        list={`${id}-names`}
        wide
        value={value}
        placeholder={list === "counters" ? "redis_commands_processed_total" : "epoll_wait"}
        onText={onName}
      />
      <datalist id={`${id}-names`}>
        {(offered.value ?? []).slice(0, MOST_OFFERED).map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </>
  );
}
