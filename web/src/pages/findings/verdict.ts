// SPDX-License-Identifier: Apache-2.0

// The three sentences at the top of the overview. Pure.
import { formatValue } from "../../lib/units";
import { type Facts, greatest, sumOf } from "./facts";

export interface Verdict {
  id: string;
  label: string;
  /** The answer in a few words. */
  answer: string;
  detail: string;
}

/** The kinds of `teescope_tee_available`, in this order. */
const TEE_NAMES: Readonly<Record<string, string>> = { sgx: "SGX", tdx: "TDX", sev: "SEV", cca: "CCA", nitro: "Nitro" };

function teeVerdict({ tees }: Facts): Verdict {
  const order = Object.keys(TEE_NAMES);
  const place = (tee: string): number => (order.includes(tee) ? order.indexOf(tee) : order.length);
  const sorted = [...tees].sort(([a], [b]) => place(a) - place(b));
  const named = sorted.map(([tee, there]) => ({ tee: TEE_NAMES[tee] ?? tee, there }));
  const found = named.filter((t) => t.there).map((t) => t.tee);
  const answer =
    tees.size === 0 ? "Not known yet" : found.length > 0 ? `${found.join(", ")} available` : "No TEE on this machine";
  const parts = named.map((t) => `${t.tee} ${t.there ? "yes" : "no"}`).join(" · ");
  const detail =
    tees.size === 0
      ? "The agent has not reported a TEE yet."
      : found.length > 0
        ? parts
        : `${parts}. Metrics of the kernel are available anyway.`;
  return { id: "tee", label: "Trusted execution", answer, detail };
}

function workloadVerdict(facts: Facts): Verdict {
  const busiest = greatest(facts.cpu);
  const count = facts.workloads.size;
  const label = "Workloads";
  if (!busiest || busiest[1] <= 0) {
    const answer = count === 0 ? "None reported yet" : `${count} shown`;
    return { id: "workloads", label, answer, detail: "No workload used CPU time in the last minute." };
  }
  const [name, cores] = busiest;
  const calls = facts.syscalls.get(name) ?? 0;
  const total = sumOf(facts.cpu);
  return {
    id: "workloads",
    label,
    answer: `${name} is busiest`,
    detail: `${formatValue(cores, "cores")} of the ${formatValue(total, "cores")} CPU cores that the ${count} workloads shown use, and ${formatValue(calls, "per_second")} of system calls.`,
  };
}

function costVerdict({ agent, probes }: Facts): Verdict {
  const known = agent.cpu !== undefined && Number.isFinite(agent.cpu);
  const cores = known ? `${formatValue(agent.cpu, "cores")} CPU cores` : undefined;
  const memory = agent.memory === undefined ? undefined : formatValue(agent.memory, "bytes");
  const answer = [cores, memory].filter((part) => part !== undefined).join(", ");
  const all = probes.attached + probes.missing.length;
  return {
    id: "cost",
    label: "Cost of monitoring",
    answer: answer === "" ? "Not known yet" : answer,
    detail: all === 0 ? "No probe has reported." : `${probes.attached} of ${all} probes attached. Collection, storage and this page are included.`,
  };
}

export function verdicts(facts: Facts): Verdict[] {
  return [teeVerdict(facts), workloadVerdict(facts), costVerdict(facts)];
}
