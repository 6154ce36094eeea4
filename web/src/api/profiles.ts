// SPDX-License-Identifier: Apache-2.0

// The answers of /api/profiles, /api/profiles/tree and /api/profiles/threads, validated.
import { type Decoder, list, number, record, shape, text, withDefault } from "./validate";

export interface TreeFrame {
  name: string;
  library: string;
  /** "kernel", "unresolved" or empty. */
  kind: string;
}

/** A flame graph. Nodes are in the order of a walk from the root, each before its children. */
export interface ProfileTree {
  title: string;
  type: string;
  unit: string;
  total: number;
  /** 0 if unknown. */
  samples: number;
  /** Nodes below it are omitted. */
  least: number;
  /** The types of the values that are the number of events and their time; empty if the samples have only one of them. */
  counts: string;
  times: string;
  notes: string[];
  table: TreeFrame[];
  depths: number[];
  frames: number[];
  totals: number[];
  selfs: number[];
  /** The shares of both profiles in units of 1e-7 %, of a difference. */
  before: number[];
  after: number[];
}

/** Values of a thread in a bucket of time. */
type Piece = [bucket: number, state: number, value: number];

interface ThreadRow {
  pid: string;
  tid: string;
  process: string;
  thread: string;
  pieces: Piece[];
}

export interface ThreadTimes {
  /** Unix seconds. */
  begin: number;
  /** Seconds of a bucket. */
  width: number;
  buckets: number;
  states: string[];
  threads: ThreadRow[];
  /** Threads that the answer leaves out. */
  left_out: number;
  /** Profiles whose samples have no times. */
  untimed: number;
  /** The unit of the values: nanoseconds, or count for events without a time. */
  unit: string;
}

/** The profiles in a span of time, of any workload. */
interface KeptProfiles {
  /** The number of profiles of events other than CPU time, by event. */
  events: Record<string, number>;
}

const numbers = list(number);
const frame = shape<TreeFrame>({ name: text, library: withDefault(text, ""), kind: withDefault(text, "") });

/** Null is the answer of a server that keeps no profiles. */
const orNone =
  <T>(decode: Decoder<T>): Decoder<T | null> =>
  (value, path) =>
    value === null ? null : decode(value, path);

export const profileTree: Decoder<ProfileTree | null> = orNone(shape<ProfileTree>({
  title: text,
  type: text,
  unit: text,
  total: number,
  samples: number,
  least: number,
  counts: withDefault(text, ""),
  times: withDefault(text, ""),
  notes: withDefault(list(text), []),
  table: list(frame),
  depths: numbers,
  frames: numbers,
  totals: numbers,
  selfs: numbers,
  before: withDefault(numbers, []),
  after: withDefault(numbers, []),
}));

const piece: Decoder<Piece> = (value, path) => {
  const [bucket = 0, state = 0, ns = 0] = numbers(value, path);
  return [bucket, state, ns];
};

export const threadTimes: Decoder<ThreadTimes | null> = orNone(shape<ThreadTimes>({
  begin: number,
  width: number,
  buckets: number,
  states: list(text),
  threads: list(shape<ThreadRow>({ pid: withDefault(text, ""), tid: text, process: withDefault(text, ""), thread: withDefault(text, ""), pieces: list(piece) })),
  left_out: number,
  untimed: number,
  unit: withDefault(text, ""),
}));

export const keptProfiles: Decoder<KeptProfiles | null> = orNone(shape<KeptProfiles>({ events: withDefault(record(number), {}) }));
