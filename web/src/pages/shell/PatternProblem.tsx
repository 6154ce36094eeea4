// SPDX-License-Identifier: Apache-2.0

// What is wrong with a regular expression, and where.
import type { RegexProblem } from "../../lib/re2";

/** Characters around the wrong one that are shown of a long one. */
const AROUND = 60;

export function PatternProblem({ text, wrong }: { text: string; wrong: RegexProblem }) {
  const from = Math.max(0, wrong.at - AROUND);
  const to = wrong.at + AROUND;
  return (
    <p class="problem" role="status">
      Character {wrong.at + 1}: {wrong.message}.
      <code>
        {from > 0 && "…"}
        {text.slice(from, wrong.at)}
        <mark>{text.slice(wrong.at, wrong.at + 1) || " "}</mark>
        {text.slice(wrong.at + 1, to)}
        {to < text.length && "…"}
      </code>
    </p>
  );
}
