// SPDX-License-Identifier: Apache-2.0

// A link to another view of the page: an address that can be opened elsewhere,
// and a click that changes the view without loading the page anew. In a report
// there is no other view, and only its words are written.
import type { ComponentChildren } from "preact";
import { useSession } from "./session";
import { useStore } from "./store";
import { formatView, type ViewState } from "./url";

interface ViewLinkProps {
  /** What is different from the view that is shown. */
  to: Partial<ViewState>;
  children: ComponentChildren;
  class?: string;
  label?: string | undefined;
  title?: string;
  current?: "page" | undefined;
  /** Called after the view has changed; without it the page goes to its top. */
  after?: () => void;
}

export function ViewLink({ to, children, label, title, current, after, ...rest }: ViewLinkProps) {
  const session = useSession();
  const view = useStore(session.view);
  if (session.recorded === true) return <>{children}</>;
  return (
    <a
      href={formatView({ ...view, ...to })}
      class={rest.class}
      aria-label={label}
      title={title}
      aria-current={current}
      onClick={(event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        session.view.update((v) => ({ ...v, ...to }));
        if (after) after();
        else window.scrollTo(0, 0);
      }}
    >
      {children}
    </a>
  );
}
