// SPDX-License-Identifier: Apache-2.0

// Loads rarely opened pages on demand, so that the others appear sooner. If the server was updated meanwhile, the whole page is loaded
// again: scripts of two versions do not work together.
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useSession } from "../lib/session";

/** Returns pages of a module that is loaded when one of them is first rendered. Then all of them stay loaded. */
export function lazyPages<M>(load: () => Promise<M>): (choose: (module: M) => ComponentType) => ComponentType {
  const loaded: Loaded<M> = {};
  return (choose) => lazyPage(loaded, load, choose);
}

interface Loaded<M> {
  module?: M;
}

const FAILED = "This page could not be loaded: teescope does not answer.";
const UPDATED = "teescope was updated. Loading the page again…";
const UPDATED_AGAIN = "The server has another version of teescope than this page. Several servers with different versions behind one address have this effect.";
/** When the page was last loaded again for an update, Unix milliseconds. */
const RELOADED = "teescope-reloaded";

/** Loads the whole page again, but not twice in a minute: servers of two versions may answer in turn. */
function reloads(): boolean {
  try {
    if (Date.now() - Number(sessionStorage.getItem(RELOADED)) < 60_000) return false;
    sessionStorage.setItem(RELOADED, String(Date.now()));
  } catch {
    return false; // the browser keeps nothing, so a second time would not be noticed
  }
  location.reload();
  return true;
}

function lazyPage<M>(shared: Loaded<M>, load: () => Promise<M>, choose: (module: M) => ComponentType): ComponentType {
  return function Lazy() {
    const { updated } = useSession();
    const [Page, setPage] = useState(() => shared.module && choose(shared.module));
    const [failed, setFailed] = useState("");
    const [attempt, setAttempt] = useState(0);
    useEffect(() => {
      if (Page) return undefined;
      let gone = false;
      const show = async (): Promise<void> => {
        const [loaded, old] = await Promise.all([load().catch(() => undefined), updated?.()]);
        if (gone) return;
        if (old && reloads()) setFailed(UPDATED);
        else if (old || !loaded) setFailed(old ? UPDATED_AGAIN : FAILED);
        else {
          shared.module = loaded;
          setPage(() => choose(loaded));
        }
      };
      setFailed("");
      void show();
      return () => {
        gone = true;
      };
    }, [attempt]);
    if (Page) return <Page />;
    return (
      <section class="panel" aria-busy={failed === ""} data-state={failed !== "" ? "error" : "loading"}>
        <div class="panel-message" role={failed !== "" ? "alert" : undefined}>
          <p>{failed || "Loading the page…"}</p>
          {failed !== "" && (
            <p>
              <button
                type="button"
                class="plain-button"
                onClick={() => {
                  // Browsers cache a failed module import. Only a new document retries it reliably.
                  if (attempt > 0 || failed !== FAILED) location.reload();
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
