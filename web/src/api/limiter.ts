// SPDX-License-Identifier: Apache-2.0

// Limits how many tasks run at a time, in the order of their arrival. A task that is cancelled while it waits never
// starts.
import { aborted } from "./errors";

interface Waiting {
  start: () => void;
  signal: AbortSignal | undefined;
}

export class Limiter {
  private running = 0;
  private readonly queue: Waiting[] = [];
  private readonly limit: number;

  constructor(limit: number) {
    this.limit = limit;
  }

  async run<T>(task: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (this.running >= this.limit) {
      await new Promise<void>((resolve) => {
        this.queue.push({ start: resolve, signal });
      });
    } else {
      this.running++;
    }
    try {
      if (signal?.aborted) throw aborted();
      return await task();
    } finally {
      this.next();
    }
  }

  /** Starts the first waiting task instead of a finished one. */
  private next(): void {
    const waiting = this.queue.shift();
    if (waiting) waiting.start();
    else this.running--;
  }
}
