// SPDX-License-Identifier: Apache-2.0

// The width of an element, which follows the window.
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
