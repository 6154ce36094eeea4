// SPDX-License-Identifier: Apache-2.0

// Colours of series. The same name has the same colour on every chart and every visit. The ten hues are
// distinguishable with the common kinds of colour blindness (after Okabe and Ito). There is one set for each theme;
// the values are CSS custom properties (--series-0 ... --series-9).

export const HUES = 10;
/** The slot of folded series and of the idle task. */
export const GREY = "rest";

export type Slot = number | typeof GREY;

// Names that often share a chart get slots that are far apart.
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

/** FNV-1a, 32 bits: small, stable, and even enough to spread names over ten hues. */
export function hashName(name: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) {
    hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193) >>> 0;
  }
  return hash;
}

/**
 * Gives each name the slot of its hash, which is the same on every chart. Two names of a chart share a hue only when
 * there are more names than hues. On a collision the later name, which has the smaller value, takes another slot. A
 * name that already had a slot on this chart keeps it.
 */
export function assignSlots(names: readonly string[], before: ReadonlyMap<string, Slot> = new Map()): Map<string, Slot> {
  const slots = new Map<string, Slot>();
  const taken = new Set<number>();
  const open: string[] = [];
  for (const name of names) {
    const earlier = before.get(name);
    if (earlier === undefined) continue;
    slots.set(name, earlier);
    if (earlier !== GREY) taken.add(earlier);
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
