// SPDX-License-Identifier: Apache-2.0

// The part of the answer of /api/top/threads that is about the boundary of enclaves, validated.
import { type Decoder, list, number, shape, text, withDefault } from "./validate";

/** Crossings since the agent counts them. */
export interface Crossings {
  eenter: number;
  eexit: number;
  /** Absent where the source does not see them. */
  aex: number | undefined;
  source: string;
}

/** Two calls, one of which follows or contains the other, or a call alone. */
export interface Pair {
  kind: string;
  from: string;
  to: string;
  n: number;
  /** How many calls the second one was seen to be, where it can be part of such a pair. */
  of: number;
  mean_seconds: number;
  advice: string;
}

interface Thread {
  pid: number;
  tid: number;
  name: string;
  started_seconds: number;
  crossings: Crossings | undefined;
}

export interface Threads {
  /** RFC 3339. */
  time: string;
  list: Thread[];
  processes: ({ pid: number } & Crossings)[];
  pairs: Pair[];
  left_out: number;
}

const aex = withDefault<number | undefined>(number, undefined);
const crossings = { eenter: number, eexit: number, aex, source: text };
const pair = shape<Pair>({ kind: text, from: text, to: text, n: number, of: number, mean_seconds: number, advice: withDefault(text, "") });
const thread = shape<Thread>({
  pid: number,
  tid: number,
  name: text,
  started_seconds: number,
  crossings: withDefault<Crossings | undefined>(shape<Crossings>(crossings), undefined),
});

const body = shape({
  time: text,
  list: list(thread),
  process_crossings: withDefault(list(shape({ pid: number, ...crossings })), []),
  pairs: withDefault(list(pair), []),
  pairs_left_out: withDefault(number, 0),
});

export const threads: Decoder<Threads> = (value, path) => {
  const { time, list: all, process_crossings: processes, pairs, pairs_left_out: left_out } = body(value, path);
  return { time, list: all, processes, pairs, left_out };
};
