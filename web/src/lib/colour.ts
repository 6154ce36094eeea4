// SPDX-License-Identifier: Apache-2.0

// Colours of series: the same name has the same colour on every chart and on
// every visit. Ten hues that stay apart for the common kinds of colour
// blindness (after Okabe and Ito), one set for each theme; the values
// themselves are CSS custom properties (--series-0 ... --series-9).

export const HUES = 10;
/** The slot of the folded rest and of the idle task: not one thing, or nothing. */
export const GREY = "rest";

export type Slot = number | typeof GREY;

// Names that appear together on one chart get slots that are far apart.
const FIXED: Readonly<Record<string, Slot>> = {
  user: 0,
  system: 1,
  voluntary: 0,
  involuntary: 1,
  minor: 0,
  major: 1,
  kernel: 8,
  other: 7,
  idle: GREY,
  read: 0,
  write: 1,
  futex: 4,
  clock_gettime: 3,
  epoll_wait: 2,
  references: 0,
  misses: 1,
  used: 0,
  cache: 2,
  buffers: 4,
  free: GREY,
  iowait: 4,
  softirq: 3,
  steal: 8,
  running: 2,
  blocked: 1,
  processes: 0,
  threads: 2,
  forks: 0,
  "thread starts": 2,
  execs: 4,
  exits: 1,
};

/** FNV-1a, 32 bits: small, stable, good enough to spread names over ten hues. */
export function hashName(name: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) {
    hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193) >>> 0;
  }
  return hash;
}

/**
 * Gives each name its slot: that of its hash, the same on every chart. Two
 * names of one chart share a hue only when there are more names than hues; on a
 * clash the later in the list, which is the lesser, moves on. A name that had a
 * slot on this chart before keeps it.
 */
export function assignSlots(names: readonly string[], before: ReadonlyMap<string, Slot> = new Map()): Map<string, Slot> {
  const slots = new Map<string, Slot>();
  const taken = new Set<number>();
  const open: string[] = [];
  for (const name of names) {
    const kept = before.get(name);
    if (kept === undefined) continue;
    slots.set(name, kept);
    if (kept !== GREY) taken.add(kept);
  }
  for (const name of names) {
    if (slots.has(name)) continue;
    const fixed = FIXED[name] ?? (name.startsWith("the rest (") ? GREY : undefined);
    if (fixed === undefined || (fixed !== GREY && taken.has(fixed))) {
      open.push(name);
      continue;
    }
    slots.set(name, fixed);
    if (fixed !== GREY) taken.add(fixed);
  }
  for (const name of open) {
    let slot = hashName(name) % HUES;
    for (let tries = 0; tries < HUES && taken.has(slot); tries++) slot = (slot + 3) % HUES;
    slots.set(name, slot);
    taken.add(slot);
  }
  return slots;
}

export function slotVariable(slot: Slot): string {
  return `--series-${slot}`;
}
