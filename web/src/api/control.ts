// SPDX-License-Identifier: Apache-2.0

// The answer of /api/control, validated: what an agent measures for a while besides its configuration.
import { type Decoder, flag, list, number, shape, text, withDefault } from "./validate";

export interface Change {
  id: string;
  /** What is done: watch, timing, exact, profile or pause. */
  kind: string;
  /** The rule of a watch, the probe of a pause, or "". */
  rule: string;
  /** The event of a profile, or "" for CPU time. */
  event: string;
  /** Who switched it on, or "". */
  by: string;
  /** Whether a password or a certificate has proven that. */
  by_verified: boolean;
  reason: string;
  /** RFC 3339. */
  end: string;
  seconds_left: number;
}

export interface Control {
  /** Whether the agent accepts changes. */
  allowed: boolean;
  /** The machine that the agent watches, as in the label "instance". */
  machine: string;
  /** The longest time of a change. */
  max_seconds: number;
  /** The probes that can be switched off. */
  probes: string[];
  changes: Change[];
}

const word = withDefault(text, "");

export const control: Decoder<Control> = shape<Control>({
  allowed: flag,
  machine: word,
  max_seconds: number,
  probes: withDefault(list(text), []),
  changes: list(
    shape<Change>({ id: text, kind: text, rule: word, event: word, by: word, by_verified: withDefault(flag, false), reason: word, end: text, seconds_left: number }),
  ),
});
