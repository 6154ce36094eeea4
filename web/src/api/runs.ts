// SPDX-License-Identifier: Apache-2.0

// The answer of /api/runs, validated: the runs that were pushed to the server.
import { type Decoder, list, number, record, shape, text, withDefault } from "./validate";

export interface Run {
  id: string;
  /** The name of the file. */
  name: string;
  /** RFC 3339. */
  started: string;
  labels: Record<string, string>;
  repetitions: number;
}

export const runs: Decoder<Run[]> = list(
  shape<Run>({ id: text, name: text, started: text, labels: withDefault(record(text), {}), repetitions: number }),
);
