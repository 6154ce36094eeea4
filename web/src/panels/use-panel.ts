// SPDX-License-Identifier: Apache-2.0

// How a person has set a panel, which is in the URL and nowhere else.
import { type PanelState, resetPanels, setPanel } from "../lib/panel-params";
import { useSession } from "../lib/session";
import { useStore } from "../lib/store";

export interface PanelSetting {
  state: PanelState;
  /** Whether anything is otherwise than at first. */
  isSet: boolean;
  /** Sets something; what is undefined is again as it is at first. */
  set: (change: PanelState) => void;
  /** Sets all of it back. */
  reset: () => void;
}

const FIRST: PanelState = {};

export function usePanel(id: string): PanelSetting {
  const { view } = useSession();
  const { page, panels } = useStore(view);
  const state = panels?.[page]?.[id];
  return {
    state: state ?? FIRST,
    isSet: state !== undefined,
    set: (change) => {
      view.update((v) => ({ ...v, panels: setPanel(v.panels, v.page, id, change) }));
    },
    reset: () => {
      view.update((v) => ({ ...v, panels: resetPanels(v.panels, v.page, id) }));
    },
  };
}
