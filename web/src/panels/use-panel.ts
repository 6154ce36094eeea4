// SPDX-License-Identifier: Apache-2.0

// The user's settings of a panel, which are in the URL only.
import { type PanelState, resetPanels, setPanel } from "../lib/panel-params";
import { useSession } from "../lib/session";
import { useStore } from "../lib/store";

export interface PanelSetting {
  state: PanelState;
  /** Whether any setting differs from the default. */
  isSet: boolean;
  /** Changes settings. An undefined member returns to the default. */
  set: (change: PanelState) => void;
  /** Resets all settings. */
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
