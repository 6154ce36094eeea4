// SPDX-License-Identifier: Apache-2.0

// A value that can be watched. It is the whole reactive layer of the page: no derived graphs, no batching, no
// dependency.
import { useEffect, useState } from "preact/hooks";

export interface Store<T> {
  get(): T;
  /** Sets the value. Watchers run only if it changes (Object.is). */
  set(next: T): void;
  update(change: (current: T) => T): void;
  /** Calls back on every change until the returned function is called. */
  watch(callback: (value: T) => void): () => void;
}

export function createStore<T>(initial: T): Store<T> {
  let current = initial;
  const watchers = new Set<(value: T) => void>();
  const store: Store<T> = {
    get: () => current,
    set(next) {
      if (Object.is(next, current)) return;
      current = next;
      for (const watcher of [...watchers]) watcher(next);
    },
    update(change) {
      store.set(change(current));
    },
    watch(callback) {
      watchers.add(callback);
      return () => {
        watchers.delete(callback);
      };
    },
  };
  return store;
}

/** Subscribes a component to a store. */
export function useStore<T>(store: Store<T>): T {
  const [value, setValue] = useState(store.get());
  useEffect(() => {
    setValue(() => store.get()); // the value may change between render and effect
    return store.watch((next) => {
      setValue(() => next);
    });
  }, [store]);
  return value;
}
