// SPDX-License-Identifier: Apache-2.0

// The zone that a person chose, which the browser remembers for links that
// name none.
import type { Zone } from "./time";

const KEY = "teescope-zone";

export function rememberedZone(): Zone {
  try {
    return localStorage.getItem(KEY) === "utc" ? "utc" : "local";
  } catch {
    return "local"; // storage may be forbidden
  }
}

export function rememberZone(zone: Zone): void {
  try {
    localStorage.setItem(KEY, zone);
  } catch {
    // the address bar has it
  }
}
