// SPDX-License-Identifier: Apache-2.0

// Finds visual faults that can be measured, in all sizes and themes.
import type { Page } from "playwright-core";
import { screenshot, seriousViolations } from "./browser";

export const SIZES = [
  { width: 360, height: 780 },
  { width: 1280, height: 900 },
  { width: 3840, height: 2160 },
] as const;
export const THEMES = ["light", "dark"] as const;

/**
 * Runs in the page. Finds a body that scrolls sideways, text that is cut off without dots or title, overlapping
 * neighbours in the header, a header of more than one line on a wide display, and program values such as "undefined".
 */
function faults(): string[] {
  const found: string[] = [];
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) found.push(`the body is ${root.scrollWidth} wide, of ${root.clientWidth}`);

  const name = (e: Element): string => {
    const at = e.closest("[data-panel]")?.getAttribute("data-panel");
    return `${at ? `${at}: ` : ""}<${e.tagName.toLowerCase()} class="${e.getAttribute("class") ?? ""}"> “${e.textContent.trim().slice(0, 60)}”`;
  };
  const seen = (e: Element): boolean => {
    const { width, height } = e.getBoundingClientRect();
    return width > 1 && height > 1 && e.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  };
  const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const judged = new Set<Element>();
  for (let node = words.nextNode(); node; node = words.nextNode()) {
    const text = node.nodeValue ?? "";
    const e = node.parentElement;
    if (text.trim() === "" || !e || !seen(e)) continue;
    if (/\b(NaN|undefined|Infinity|null)\b|\[object /.test(text)) found.push(`${name(e)} says “${text.trim().slice(0, 80)}”`);
    let box = e; // inline elements have no width, so their block is measured
    while (box.parentElement && getComputedStyle(box).display === "inline") box = box.parentElement;
    if (judged.has(box)) continue;
    judged.add(box);
    if (box.scrollWidth <= box.clientWidth + 1) continue;
    const { overflowX, textOverflow } = getComputedStyle(box);
    if (overflowX === "auto" || overflowX === "scroll" || textOverflow === "ellipsis" || box.closest("[title]")) continue;
    found.push(`${name(box)} is cut off: ${box.scrollWidth} wide, of ${box.clientWidth}`);
  }
  for (const row of document.querySelectorAll("header.top, header.top .controls, header.top nav ul, .panel-head")) {
    const boxes = [...row.children].filter((e) => seen(e) && e.tagName !== "DIALOG").map((e) => ({ e, box: e.getBoundingClientRect() }));
    boxes.forEach(({ e, box }, i) => {
      for (const other of boxes.slice(i + 1)) {
        const wide = Math.min(box.right, other.box.right) - Math.max(box.left, other.box.left);
        const high = Math.min(box.bottom, other.box.bottom) - Math.max(box.top, other.box.top);
        if (wide > 1 && high > 1) found.push(`${name(e)} and ${name(other.e)} lie over each other`);
      }
    });
  }
  const head = [".brand", "nav", ".controls"].map((part) => document.querySelector(`header.top > ${part}`)?.getBoundingClientRect());
  const lowest = Math.max(...head.map((box) => box?.top ?? 0));
  if (innerWidth >= 1280 && head.some((box) => box && box.bottom <= lowest)) found.push("the header has more than one line");
  return found;
}

/** Returns the faults of the page: measured ones, and those that axe finds with all or some rules. */
export async function wrong(page: Page, within?: string, rules?: readonly string[]): Promise<string[]> {
  const barriers = await seriousViolations(page, within, rules);
  return [...new Set([...(await page.evaluate(faults)), ...barriers.map((v) => `${v.id}: ${v.nodes.join("; ")}`)])];
}

/** Switches to a theme, and waits until it is drawn: axe reads the colours of the last frame. */
export async function useTheme(page: Page, colorScheme: (typeof THEMES)[number]): Promise<void> {
  await page.emulateMedia({ colorScheme });
  await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))");
}

/** Takes all pictures, for a person to look at. This takes longer than all checks. */
const allPictures = process.env["BROWSER_PICTURES"] === "all";

/** The colour rules of axe, which run in every theme. */
const COLOURS = ["color-contrast", "link-in-text-block"];

/**
 * Checks a page in every size and theme, and notes the faults. axe does not run on the large size, where it finds
 * nothing more. Takes pictures of the narrow dark page and of the light page in a common size, or of all.
 */
export async function lookOver(page: Page, name: string, notes: Record<string, string[]>): Promise<void> {
  for (const { width, height } of SIZES) {
    await page.setViewportSize({ width, height });
    for (const colorScheme of THEMES) {
      await useTheme(page, colorScheme);
      const main = (width === 360) === (colorScheme === "dark");
      const found = width > 2000 ? await page.evaluate(faults) : await wrong(page, undefined, main ? undefined : COLOURS);
      const key = `${name}-${colorScheme}-${width}`;
      if (found.length > 0) notes[key] = [...new Set(found)];
      if (allPictures || (main && width < 2000)) await screenshot(page, key);
    }
  }
}
