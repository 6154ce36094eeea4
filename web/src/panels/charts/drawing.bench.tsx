// SPDX-License-Identifier: Apache-2.0

// Draws many series the way a chart panel does, for test/browser/speed.test.ts to take the time. Not part of the page.
import { h, render } from "preact";
import { Client } from "../../api/client";
import { assignSlots } from "../../lib/colour";
import { fold, type Frame } from "../../lib/series";
import { createSession, type Session, SessionProvider } from "../../lib/session";
import { createStore } from "../../lib/store";
import { FrameLoader } from "../frames";
import { Plot } from "./Plot";
import "../../styles/tokens.css";
import "../../styles/base.css";
import "../../styles/panels.css";

const TOP = 24;

// As in a report, so that nothing but the series is asked for.
const session: Session = { ...createSession(new Client(), createStore({}), 0, "", "utc"), recorded: true };

/** Draws a frame into an element below the others. */
function draw(frame: Frame): void {
  const root = document.body.appendChild(document.createElement("div"));
  const times = frame.times;
  const interval = { from: times[0] ?? 0, to: times.at(-1) ?? 1 };
  const nothing = (): void => undefined;
  const slots = assignSlots(frame.series.map((s) => s.name));
  const plot = h(Plot, { frame, interval, slots, unit: "count", stacked: false, label: "made", onCursor: nothing, onZoom: nothing });
  render(<SessionProvider value={session}>{plot}</SessionProvider>, root);
}

const painted = (): Promise<void> =>
  new Promise((done) => {
    requestAnimationFrame(() => {
      // uPlot draws in a microtask after the effect that makes it; this is the frame after that one.
      requestAnimationFrame(() => {
        done();
      });
    });
  });

let loaded: Frame = { times: [], series: [] };

/** Asks for the series, checks them and puts them on a grid; gives the milliseconds. */
async function load(): Promise<number> {
  const began = performance.now();
  const queries = [{ expr: "made", legend: "{{name}}" }];
  const request = { queries, interval: { from: 0, to: 1999 }, points: 2000, filling: { workloads: [], scrapeInterval: 1 } };
  loaded = (await new FrameLoader(new Client()).load(request, new AbortController().signal)).frame;
  return performance.now() - began;
}

/** Folds and draws them as a chart does, until the browser has the picture; gives the milliseconds. */
async function measure(): Promise<number> {
  const began = performance.now();
  draw(fold(loaded, TOP).frame);
  await painted();
  return performance.now() - began;
}

/** Scrolls the whole document up and down for a while, and gives the milliseconds between frames. */
async function scroll(milliseconds: number): Promise<number[]> {
  const gaps: number[] = [];
  const deepest = document.documentElement.scrollHeight - innerHeight;
  const began = performance.now();
  for (let last = began; last - began < milliseconds; ) {
    window.scrollTo(0, (deepest * (1 + Math.sin((last - began) / 300))) / 2);
    const now = await new Promise<number>(requestAnimationFrame);
    gaps.push(now - last);
    last = now;
  }
  return gaps.slice(2);
}

Object.assign(window, { load, measure, scroll });
