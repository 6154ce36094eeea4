// SPDX-License-Identifier: Apache-2.0

// The zone that the user chose. The browser remembers it for links without a zone.
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
    // without storage only the address bar has the zone
  }
}
