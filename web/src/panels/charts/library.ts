// SPDX-License-Identifier: Apache-2.0

// The chart library, which loads while the page starts, so that text appears before it. It does not depend on the version of the page
// (bundle.test.ts), so it is loaded without the check of lib/version.ts.
import { useEffect, useState } from "preact/hooks";
import type uPlot from "uplot";

let library: typeof uPlot | undefined;

async function load(): Promise<void> {
  library = (await import("uplot")).default;
}

// A failure is handled where a chart waits for the library.
let loading: Promise<void> = load();
loading.catch(() => undefined);

/** Returns the library, or undefined until it is loaded. A chart that appears after a failure tries again. */
export function useLibrary(): typeof uPlot | undefined {
  const [, setLoaded] = useState(false);
  useEffect(() => {
    if (library) return;
    const show = (): void => {
      setLoaded(true);
    };
    loading = loading.catch(load);
    loading.then(show, () => undefined);
  }, []);
  return library;
}
