// SPDX-License-Identifier: Apache-2.0

// The temporary measurements of this server's agent.
import type { Control } from "../api/control";
import { useSession } from "../lib/session";
import { useStore } from "../lib/store";
import { type Loaded, useRequest } from "../panels/use-data";

/** Seconds between two looks at what is on. */
const EVERY_SECONDS = 2;

/** Queries periodically, and immediately when the number of changes grows. */
export function useControl(changes: number): Loaded<Control | null> {
  const tick = Math.floor(useStore(useSession().now) / EVERY_SECONDS);
  return useRequest((s) => s.client.control(), `control ${changes}`, String(tick), true);
}
