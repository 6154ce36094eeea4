// SPDX-License-Identifier: Apache-2.0

// A panel as a PNG: draws the visible elements again on a canvas, in the current theme. It supports only what panels
// contain: canvases, text, backgrounds, lower borders, and simple SVG shapes.

/** Pixels of the picture per CSS pixel. */
const SCALE = 2;
const MARGIN = 6;
const FOOT = 24;

/** Elements for the screen only: buttons, what follows the pointer, text for screen readers. */
const NOT_PAINTED = "[data-no-picture], .u-over, .u-select, .only-spoken";

/** Draws a panel, with a line of small text below it. */
export async function picture(panel: HTMLElement, foot: string): Promise<Blob> {
  const box = panel.getBoundingClientRect();
  const canvas = document.createElement("canvas");
  canvas.width = Math.ceil((box.width + 2 * MARGIN) * SCALE);
  canvas.height = Math.ceil((box.height + 2 * MARGIN + FOOT) * SCALE);
  const context = canvas.getContext("2d");
  if (!context) throw new Error("The browser has no canvas to draw on.");
  const style = getComputedStyle(panel);
  context.scale(SCALE, SCALE);
  context.fillStyle = style.backgroundColor;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.translate(MARGIN - box.left, MARGIN - box.top);
  paint(context, panel);
  context.font = `12px ${style.fontFamily}`;
  context.fillStyle = style.getPropertyValue("--muted");
  context.fillText(foot, box.left + 12, box.bottom + FOOT / 2 + 3);
  return new Promise((done, failed) => {
    canvas.toBlob((blob) => {
      if (blob) done(blob);
      else failed(new Error("The browser could not write the picture."));
    }, "image/png");
  });
}

function paint(context: CanvasRenderingContext2D, element: Element): void {
  if (element.matches(NOT_PAINTED)) return;
  const style = getComputedStyle(element);
  if (style.display === "none" || style.visibility === "hidden" || style.opacity === "0") return;
  const box = element.getBoundingClientRect();
  context.save();
  context.globalAlpha *= Number(style.opacity);
  ground(context, box, style);
  if (element instanceof HTMLCanvasElement) {
    if (element.width > 0 && element.height > 0) context.drawImage(element, box.left, box.top, box.width, box.height);
  } else if (element instanceof SVGGeometryElement) {
    shape(context, element, style);
  }
  if (style.overflowX !== "visible" || style.overflowY !== "visible") {
    context.beginPath();
    context.rect(box.left, box.top, box.width, box.height);
    context.clip();
  }
  const children = [...element.childNodes];
  // The head of a table stays above the scrolled rows.
  if (element instanceof HTMLTableElement) children.reverse();
  for (const child of children) {
    if (child instanceof Element) paint(context, child);
    else if (child instanceof Text) words(context, child, element, style);
  }
  context.restore();
}

function isClear(colour: string): boolean {
  return colour === "transparent" || /^rgba\(.*, 0\)$/.test(colour);
}

function ground(context: CanvasRenderingContext2D, box: DOMRect, style: CSSStyleDeclaration): void {
  if (!isClear(style.backgroundColor)) {
    context.fillStyle = style.backgroundColor;
    context.beginPath();
    context.roundRect(box.left, box.top, box.width, box.height, parseFloat(style.borderTopLeftRadius) || 0);
    context.fill();
  }
  const border = parseFloat(style.borderBottomWidth);
  if (border > 0 && style.borderBottomStyle !== "none" && !isClear(style.borderBottomColor)) {
    context.fillStyle = style.borderBottomColor;
    context.fillRect(box.left, box.bottom - border, box.width, border);
  }
}

/** Draws the words of a text at their positions in the browser. */
function words(context: CanvasRenderingContext2D, text: Text, parent: Element, style: CSSStyleDeclaration): void {
  context.font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  context.fillStyle = parent instanceof SVGElement ? style.fill : style.color;
  const range = document.createRange();
  for (const { 0: word, index } of text.data.matchAll(/\S+/g)) {
    range.setStart(text, index);
    range.setEnd(text, index + word.length);
    const box = range.getBoundingClientRect();
    if (box.width === 0) continue;
    const size = context.measureText(word);
    const middle = (size.fontBoundingBoxAscent - size.fontBoundingBoxDescent) / 2;
    context.fillText(word, box.left, (box.top + box.bottom) / 2 + middle);
  }
}

function shape(context: CanvasRenderingContext2D, element: SVGGeometryElement, style: CSSStyleDeclaration): void {
  const path = outline(element);
  const matrix = element.getScreenCTM();
  if (!path || !matrix) return;
  const placed = new Path2D();
  placed.addPath(path, matrix);
  if (style.fill !== "none" && !isClear(style.fill)) {
    context.fillStyle = style.fill;
    context.fill(placed);
  }
  if (style.stroke !== "none" && !isClear(style.stroke)) {
    context.strokeStyle = style.stroke;
    context.lineWidth = parseFloat(style.strokeWidth) || 1;
    context.stroke(placed);
  }
}

function outline(element: SVGGeometryElement): Path2D | undefined {
  const path = new Path2D();
  const value = (length: SVGAnimatedLength): number => length.baseVal.value;
  if (element instanceof SVGPathElement) return new Path2D(element.getAttribute("d") ?? "");
  if (element instanceof SVGRectElement) path.rect(value(element.x), value(element.y), value(element.width), value(element.height));
  else if (element instanceof SVGCircleElement) path.arc(value(element.cx), value(element.cy), value(element.r), 0, 2 * Math.PI);
  else if (element instanceof SVGLineElement) {
    path.moveTo(value(element.x1), value(element.y1));
    path.lineTo(value(element.x2), value(element.y2));
  } else return undefined;
  return path;
}
