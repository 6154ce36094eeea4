// SPDX-License-Identifier: Apache-2.0

/** Why the server refuses a regular expression: "missing closing ): `a(b`". */
export function PatternProblem({ reason }: { reason: string }) {
  return (
    <p class="problem" role="status">
      The server refuses this pattern: {reason}.
    </p>
  );
}
