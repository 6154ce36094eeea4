// SPDX-License-Identifier: Apache-2.0

// Loads rarely opened pages on demand, so that the others appear sooner.
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";

/** Returns pages of a module that is loaded when one of them is first rendered. Then all of them stay loaded. */
export function lazyPages<M>(load: () => Promise<M>): (choose: (module: M) => ComponentType) => ComponentType {
  let module: M | undefined;
  const once = async (): Promise<M> => (module ??= await load());
  return (choose) => lazyPage(() => (module === undefined ? undefined : choose(module)), () => once().then(choose));
}

function lazyPage(ready: () => ComponentType | undefined, load: () => Promise<ComponentType>): ComponentType {
  return function Lazy() {
    const [Page, setPage] = useState<ComponentType | undefined>(ready);
    const [failed, setFailed] = useState(false);
    const [attempt, setAttempt] = useState(0);
    useEffect(() => {
      if (Page) return undefined;
      let gone = false;
      setFailed(false);
      load()
        .then((loaded) => {
          if (!gone) setPage(() => loaded);
        })
        .catch(() => {
          if (!gone) setFailed(true);
        });
      return () => {
        gone = true;
      };
    }, [attempt]);
    if (Page) return <Page />;
    return (
      <section class="panel" aria-busy={!failed} data-state={failed ? "error" : "loading"}>
        <div class="panel-message" role={failed ? "alert" : undefined}>
          <p>{failed ? "This page could not be loaded: teescope does not answer or was updated." : "Loading the page…"}</p>
          {failed && (
            <p>
              <button
                type="button"
                class="plain-button"
                onClick={() => {
                  // Browsers cache a failed module import. Only a new document retries it reliably.
                  if (attempt > 0) location.reload();
                  else setAttempt(1);
                }}
              >
                Try again
              </button>
            </p>
          )}
        </div>
      </section>
    );
  };
}
