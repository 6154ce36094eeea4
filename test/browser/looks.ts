// SPDX-License-Identifier: Apache-2.0

// What can be seen to be wrong with a page without a person who looks: sizes, themes, and faults that can be measured.
import type { Page } from "playwright-core";
import { screenshot, seriousViolations } from "./browser";

export const SIZES = [
  { width: 360, height: 780 },
  { width: 1280, height: 900 },
  { width: 3840, height: 2160 },
] as const;
export const THEMES = ["light", "dark"] as const;

/**
 * Runs in the page: a body that scrolls sideways; text that is cut off and says so neither by dots nor by a title;
 * neighbours in the head that lie over each other; values of the program that nobody meant to be read.
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
    let box = e; // what is in the line has no width of its own: the block around it has
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
  return found;
}

/** What is wrong with what is drawn now: faults that can be measured, and barriers that axe finds, with all rules or some. */
export async function wrong(page: Page, within?: string, rules?: readonly string[]): Promise<string[]> {
  const barriers = await seriousViolations(page, within, rules);
  return [...new Set([...(await page.evaluate(faults)), ...barriers.map((v) => `${v.id}: ${v.nodes.join("; ")}`)])];
}

/** All pictures are taken if somebody wants to look at them: that takes longer than all checks. */
const allPictures = process.env["BROWSER_PICTURES"] === "all";

/** What axe looks for in the theme that it has not looked at with all rules in the same size. */
const COLOURS = ["color-contrast", "link-in-text-block"];

/**
 * Looks at a page in every size and theme, and writes down what is wrong. On the large size axe has nothing to add. Pictures
 * are taken of the narrow dark page and the light one of a common size, or of everything.
 */
export async function lookOver(page: Page, name: string, notes: Record<string, string[]>): Promise<void> {
  for (const { width, height } of SIZES) {
    await page.setViewportSize({ width, height });
    for (const colorScheme of THEMES) {
      await page.emulateMedia({ colorScheme });
      await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))");
      const main = (width === 360) === (colorScheme === "dark");
      const found = width > 2000 ? await page.evaluate(faults) : await wrong(page, undefined, main ? undefined : COLOURS);
      const key = `${name}-${colorScheme}-${width}`;
      if (found.length > 0) notes[key] = [...new Set(found)];
      if (allPictures || (main && width < 2000)) await screenshot(page, key);
    }
  }
}
