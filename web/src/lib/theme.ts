// SPDX-License-Identifier: Apache-2.0

// Dark and light theme: the system's choice, unless the user chose one, which the browser remembers. The choice is an
// attribute of <html>.
import { useEffect, useState } from "preact/hooks";

type Theme = "light" | "dark";

const KEY = "teescope-theme";
const CHANGED = "teescope-theme-changed";

function isTheme(text: string | null | undefined): text is Theme {
  return text === "light" || text === "dark";
}

function remembered(): Theme | undefined {
  try {
    const text = localStorage.getItem(KEY);
    return isTheme(text) ? text : undefined;
  } catch {
    return undefined; // storage may be forbidden
  }
}

function currentTheme(): Theme {
  const chosen = document.documentElement.dataset["theme"];
  if (isTheme(chosen)) return chosen;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

export function applyRememberedTheme(): void {
  const theme = remembered();
  if (theme) document.documentElement.dataset["theme"] = theme;
}

export function toggleTheme(): void {
  const next: Theme = currentTheme() === "dark" ? "light" : "dark";
  document.documentElement.dataset["theme"] = next;
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // without storage the choice lasts until the page is closed
  }
  document.dispatchEvent(new Event(CHANGED));
}

/** Returns the current theme, and renders again when it changes. */
export function useThemeName(): Theme {
  const [theme, setTheme] = useState(currentTheme);
  useEffect(() => {
    const media = matchMedia("(prefers-color-scheme: dark)");
    const look = (): void => {
      setTheme(currentTheme());
    };
    media.addEventListener("change", look);
    document.addEventListener(CHANGED, look);
    return () => {
      media.removeEventListener("change", look);
      document.removeEventListener(CHANGED, look);
    };
  }, []);
  return theme;
}

/** Returns the resolved value of a design token. */
export function token(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
