// SPDX-License-Identifier: Apache-2.0

// Formats lists as sentences, and names.

/** "a", "a and b", "a, b and c". */
export function listWords(words: readonly string[]): string {
  const last = words.at(-1) ?? "";
  return words.length < 2 ? last : `${words.slice(0, -1).join(", ")} and ${last}`;
}

/** A name, with a note if the user was not authenticated. Without a name it is empty. */
export function claimed(by: string, verified: boolean): string {
  return by === "" || verified ? by : `${by} (not verified)`;
}

/** Facts, and then what somebody wrote about them. It is the last part, so that nothing in it looks like one of the facts. */
export function stated(facts: readonly string[], reason: string): string {
  return [facts.filter(Boolean).join(" · "), reason].filter(Boolean).join(": ");
}

/** One word of a command for a shell. Programs choose their names, and a user copies the command. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** Lists the first few words, and how many more there are. */
export function listFirst(words: readonly string[], most = 4): string {
  return words.length <= most + 1 ? listWords(words) : listWords([...words.slice(0, most), `${words.length - most} more`]);
}

/** Groups entries with the same reason: "a and b: no PMU; c: denied". */
export function groupReasons(entries: readonly { name: string; reason: string }[]): string {
  const byReason = new Map<string, Set<string>>();
  for (const { name, reason } of entries) {
    const names = byReason.get(reason) ?? new Set<string>();
    byReason.set(reason, names.add(name));
  }
  return [...byReason]
    .map(([reason, names]) => `${listWords([...names].sort())}: ${reason === "" ? "no reason given" : reason}`)
    .join("; ");
}
