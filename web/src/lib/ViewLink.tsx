// SPDX-License-Identifier: Apache-2.0

// A link to another view of the page. Its address can be opened elsewhere, and a click changes the view without a
// reload. A report has no other views, so only the text is written.
import type { ComponentChildren } from "preact";
import { useSession } from "./session";
import { useStore } from "./store";
import { formatView, type ViewState } from "./url";

interface ViewLinkProps {
  /** What differs from the current view. */
  to: Partial<ViewState>;
  children: ComponentChildren;
  class?: string;
  label?: string | undefined;
  title?: string;
  current?: "page" | undefined;
  /** Called after the view has changed. Without it the page scrolls to its top. */
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
