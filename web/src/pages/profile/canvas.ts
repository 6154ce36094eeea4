// SPDX-License-Identifier: Apache-2.0

// What canvases of the page Profile share: the width of an element, which follows the window, and the beginning of a picture.
import { useEffect, useRef, useState } from "preact/hooks";

export function useWidth(): [{ current: HTMLDivElement | null }, number] {
  const element = useRef<HTMLDivElement | null>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    if (!element.current) return undefined;
    const observer = new ResizeObserver(([entry]) => {
      setWidth(Math.floor(entry?.contentRect.width ?? 0));
    });
    observer.observe(element.current);
    return () => {
      observer.disconnect();
    };
  }, []);
  return [element, width];
}

/** The width of a letter, in CSS pixels. Texts are cut by it, because measuring each would take longer than drawing. */
const LETTER = 7.2;

/** Cuts a text to a width in CSS pixels. */
export function fitting(text: string, width: number): string {
  const fits = Math.floor(width / LETTER);
  return text.length > fits ? `${text.slice(0, fits - 1)}…` : text;
}

/** Begins a picture of a size in CSS pixels. */
export function beginPicture(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D | null {
  const context = canvas.getContext("2d");
  if (!context) return null;
  const ratio = devicePixelRatio;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
    canvas.style.height = `${height}px`;
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = `11.5px ${getComputedStyle(canvas).fontFamily}`;
  context.textBaseline = "middle";
  return context;
}
