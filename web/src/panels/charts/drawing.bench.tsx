// SPDX-License-Identifier: Apache-2.0

// Draws many series like a chart panel, for the measurements of test/browser/speed.test.ts. Not part of the page.
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

// A recorded session, so that only the series are queried.
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
      // uPlot draws in a microtask after the effect. This is the frame after that one.
      requestAnimationFrame(() => {
        done();
      });
    });
  });

let loaded: Frame = { times: [], series: [] };

/** Loads the series, validates them and puts them on a grid. Returns the milliseconds. */
async function load(): Promise<number> {
  const began = performance.now();
  const queries = [{ expr: "made", legend: "{{name}}" }];
  const request = { queries, interval: { from: 0, to: 1999 }, points: 2000, filling: { workloads: [], scrapeInterval: 1 } };
  loaded = (await new FrameLoader(new Client()).load(request, new AbortController().signal)).frame;
  return performance.now() - began;
}

/** Folds and draws the series until they are painted. Returns the milliseconds. */
async function measure(): Promise<number> {
  const began = performance.now();
  draw(fold(loaded, TOP).frame);
  await painted();
  return performance.now() - began;
}

/** Scrolls the document up and down, and returns the milliseconds between frames. */
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
