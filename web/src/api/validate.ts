// SPDX-License-Identifier: Apache-2.0

// Hand-written validation of JSON. A decoder takes an unknown value and its path, and returns a typed value or
// throws.
import { malformed } from "./errors";

export type Decoder<T> = (value: unknown, path: string) => T;

function describe(value: unknown): string {
  if (value === null) return "null";
  if (value === undefined) return "nothing";
  return Array.isArray(value) ? "an array" : `a ${typeof value}`;
}

export const text: Decoder<string> = (value, path) => {
  if (typeof value !== "string") throw malformed(path, `expected a string, found ${describe(value)}`);
  return value;
};

export const number: Decoder<number> = (value, path) => {
  if (typeof value !== "number") throw malformed(path, `expected a number, found ${describe(value)}`);
  return value;
};

export const flag: Decoder<boolean> = (value, path) => {
  if (typeof value !== "boolean") throw malformed(path, `expected true or false, found ${describe(value)}`);
  return value;
};

/** A sample value. Prometheus writes it as a string, because JSON has no +Inf and NaN. */
export const sampleValue: Decoder<number> = (value, path) => {
  const written = text(value, path);
  if (written === "+Inf") return Infinity;
  if (written === "-Inf") return -Infinity;
  if (written === "NaN") return NaN;
  const parsed = Number(written);
  if (written === "" || Number.isNaN(parsed)) throw malformed(path, `expected a sample value, found "${written}"`);
  return parsed;
};

export function list<T>(item: Decoder<T>): Decoder<T[]> {
  return (value, path) => {
    if (!Array.isArray(value)) throw malformed(path, `expected an array, found ${describe(value)}`);
    return value.map((entry: unknown, i) => item(entry, `${path}[${i}]`));
  };
}

export function pair<A, B>(first: Decoder<A>, second: Decoder<B>): Decoder<[A, B]> {
  return (value, path) => {
    if (!Array.isArray(value) || value.length !== 2) throw malformed(path, "expected a pair");
    return [first(value[0], `${path}[0]`), second(value[1], `${path}[1]`)];
  };
}

export function record<T>(item: Decoder<T>): Decoder<Record<string, T>> {
  return (value, path) => {
    const out: Record<string, T> = {};
    for (const [key, entry] of Object.entries(object(value, path))) out[key] = item(entry, `${path}.${key}`);
    return out;
  };
}

export function object(value: unknown, path: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw malformed(path, `expected an object, found ${describe(value)}`);
  }
  return value as Record<string, unknown>;
}

/** An object with the given members. Others are ignored. */
export function shape<T>(members: { [K in keyof T]: Decoder<T[K]> }): Decoder<T> {
  return (value, path) => {
    const source = object(value, path);
    const out: Partial<T> = {};
    for (const key of Object.keys(members) as (keyof T & string)[]) {
      out[key] = members[key](source[key], `${path}.${key}`);
    }
    return out as T;
  };
}

/** A member that may be missing. */
export function withDefault<T>(item: Decoder<T>, fallback: T): Decoder<T> {
  return (value, path) => (value === undefined || value === null ? fallback : item(value, path));
}
