// SPDX-License-Identifier: Apache-2.0

// The answer of /api/findings, validated. Its schema is docs/user/findings.schema.json.
import { malformed } from "./errors";
import { type Decoder, flag, list, number, shape, text, withDefault } from "./validate";

/** In rising order. */
export const SEVERITIES = ["info", "low", "medium", "high"] as const;
type Severity = (typeof SEVERITIES)[number];

export interface Evidence {
  name: string;
  value: number;
  /** Unit as in metric names: "1/s", "bytes", "seconds", "ratio". */
  unit: string;
  low: number | undefined;
  high: number | undefined;
  /** Samples in the window, 0 when unknown. */
  n: number;
  query: string;
}

/** Estimated additional throughput without the cause: 0.2 is 20 %. */
export interface Gain {
  low: number;
  high: number;
  /** What limits the throughput now. */
  limit: string;
  assumptions: string[];
}

/** Estimated CPU time that the workload would not use without the cause, in cores. */
export interface Saving {
  low: number;
  high: number;
  assumptions: string[];
}

export interface Finding {
  id: string;
  rule: string;
  title: string;
  /** Empty for a finding about the whole machine. */
  workload: string;
  instance: string;
  cause: string;
  severity: Severity;
  confidence: string;
  /** RFC 3339. */
  first_seen: string;
  last_seen: string;
  evidence: Evidence[];
  advice: string[];
  saving: Saving | undefined;
  /** Absent if the limit of the throughput is not known. */
  gain: Gain | undefined;
  /** Rules that found consequences of this cause. They are not listed. */
  explains: string[];
  /** Rules of findings to whose estimates those of this one can be added. */
  adds: string[];
  /** Rules of findings about the same events or the same time. If such a rule is in adds too, its part is omitted here. */
  overlaps: string[];
  /** Events shortly before it began, the last one first. They need not be its cause. */
  preceded: { at: string; seconds: number; what: string; chance: number }[];
  /** The first figure of the evidence a day and a week before it began. */
  earlier: { ago_seconds: number; name: string; value: number; unit: string }[];
  /** Those with the largest figure that the evidence is about. */
  threads: { name: string; count: number; figure: string; value: number; unit: string }[];
  /** Only one evaluation has found it. It raises no alert. */
  unconfirmed: boolean;
  not_when: string[];
  sources: string[];
  runbook: string;
  /** How to find the code that causes it. Absent if no code causes it. */
  code: Code | undefined;
  /** What teescope advise says of the manifest of a program in Gramine. */
  settings: string[];
  /** Thresholds of the rule that the configuration has replaced. */
  thresholds: { name: string; value: number; default: number; unit: string }[];
  /** The silence that covers the finding. A silenced finding raises no alert. */
  silence: Silence | undefined;
}

interface Code {
  /** Records it on the workload's machine. */
  command: string;
  /** Paths of flame graphs, or empty: of the window, and of what is different from before it began. */
  profile: string;
  change: string;
  /** The functions with the most samples, in words. */
  lines: string[];
}

interface Silence {
  id: string;
  kind: string;
  comment: string;
  createdBy: string;
  /** Whether a password or a certificate has proven that. */
  createdByVerified: boolean;
  /** RFC 3339, or empty if it does not end. */
  endsAt: string;
}

export interface Problem {
  kind: string;
  query: string;
  workload: string;
  instance: string;
  error: string;
  rules: string[];
}

/** What limits the throughput of a workload. */
export interface Limit {
  workload: string;
  instance: string;
  /** The name for display. */
  name: string;
  /** One sentence with figures. */
  because: string;
}

/** A finding of a cause that several machines have. */
interface Member {
  workload: string;
  instance: string;
  severity: Severity;
  /** 0 without a saving. */
  saved_cores_low: number;
  saved_cores_high: number;
}

/** A rule with findings on several machines. */
export interface Cause extends Omit<Member, "workload" | "instance"> {
  rule: string;
  title: string;
  machines: number;
  findings: number;
  /** Those with the largest savings. */
  members: Member[];
}

export interface Report {
  at: string;
  window_seconds: number;
  workloads: number;
  findings: Finding[];
  /** Sorted by the lower end of the saving in cores, the largest first. */
  causes: Cause[];
  limits: Limit[];
  left_out: number;
  /** Findings that a silence hides. */
  muted: number;
  problems: Problem[];
  checked: string[];
  skipped: { rule: string; reason: string }[];
}

const texts = withDefault(list(text), []);
const word = withDefault(text, "");

export function optional<T>(item: Decoder<T>): Decoder<T | undefined> {
  return withDefault<T | undefined>(item, undefined);
}

const severity: Decoder<Severity> = (value, path) => {
  const found = SEVERITIES.find((s) => s === value);
  if (found === undefined) throw malformed(path, `expected a severity, found ${JSON.stringify(value)}`);
  return found;
};

const evidence = shape<Evidence>({
  name: text,
  value: number,
  unit: text,
  low: optional(number),
  high: optional(number),
  n: withDefault(number, 0),
  query: text,
});

const finding = shape<Finding>({
  id: text,
  rule: text,
  title: text,
  workload: text,
  instance: word,
  cause: text,
  severity,
  confidence: text,
  first_seen: text,
  last_seen: text,
  evidence: list(evidence),
  advice: list(text),
  code: optional(shape<Code>({ command: text, profile: word, change: word, lines: texts })),
  settings: texts,
  saving: optional(shape<Saving>({ low: number, high: number, assumptions: texts })),
  gain: optional(shape<Gain>({ low: number, high: number, limit: word, assumptions: texts })),
  explains: texts,
  adds: texts,
  overlaps: texts,
  preceded: withDefault(list(shape({ at: text, seconds: number, what: text, chance: number })), []),
  earlier: withDefault(list(shape({ ago_seconds: number, name: text, value: number, unit: text })), []),
  threads: withDefault(list(shape({ name: text, count: number, figure: text, value: number, unit: text })), []),
  unconfirmed: withDefault(flag, false),
  not_when: texts,
  sources: texts,
  runbook: word,
  thresholds: withDefault(list(shape({ name: text, value: number, default: number, unit: text })), []),
  silence: optional(shape<Silence>({ id: text, kind: text, comment: text, createdBy: word, createdByVerified: withDefault(flag, false), endsAt: word })),
});

const problem = shape<Problem>({ kind: text, query: word, workload: word, instance: word, error: text, rules: texts });

const saved = { severity, saved_cores_low: number, saved_cores_high: number };

export const cause = shape<Cause>({
  rule: text,
  title: text,
  machines: number,
  findings: number,
  ...saved,
  members: list(shape<Member>({ workload: text, instance: text, ...saved })),
});

const body = shape<Report>({
  at: text,
  window_seconds: number,
  workloads: number,
  findings: list(finding),
  causes: withDefault(list(cause), []),
  limits: withDefault(list(shape<Limit>({ workload: text, instance: word, name: text, because: text })), []),
  left_out: number,
  muted: withDefault(number, 0),
  problems: list(problem),
  checked: list(text),
  skipped: list(shape({ rule: text, reason: text })),
});

export const report: Decoder<Report> = (value, path) => {
  const version = shape({ schema: number })(value, path).schema;
  if (version !== 1) throw malformed(`${path}.schema`, `wanted 1, found ${version}`);
  return body(value, path);
};
