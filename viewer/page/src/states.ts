// What threads did, in a thin row above their calls: on a processor, ready or blocked, with page faults as
// ticks. Calls are hatched where their thread was blocked, and less densely where it was ready.

import type { Bytes, Scheme } from "./color";
import { firstEndingAfter, type Lanes, type States } from "./decode";
import { duration, percent, plural } from "./format";
import type { Raster } from "./raster";
import { unknownIn } from "./unknown";
import type { Span } from "./viewport";

/** StatePiece is what one answer has to say of a thread's states. */
export interface StatePiece {
  span: Span;
  states: States | null;
}

/** Shares are how much of a stretch a thread was in each state: 255 is all of it. */
export interface Shares {
  running: number;
  ready: number;
  blocked: number;
  uninterruptible: number; // of blocked
}

export function sharesOf(word: number): Shares {
  return { running: word & 255, ready: (word >>> 8) & 255, blocked: (word >>> 16) & 255, uninterruptible: word >>> 24 };
}

/** sharesAt is what is shown of a thread's states at an instant, and how many page faults; null if nothing is. */
export function sharesAt(answers: { span: Span; lanes: Lanes }[], lane: number, at: number, near: number): { word: number; faults: number; duration: number } | null {
  for (let k = answers.length - 1; k >= 0; k--) {
    const s = answers[k].span.from <= at && answers[k].span.to >= at ? answers[k].lanes.get(lane)?.states : null;
    if (!s) continue;
    const i = firstEndingAfter(s, at - near);
    return i < s.start.length && s.start[i] <= at + near ? { word: s.shares[i], faults: s.faults[i], duration: s.duration[i] } : null;
  }
  return null;
}

/** sharesLines are the lines that tell about a place in a row of states. */
export function sharesLines(x: { word: number; faults: number; duration: number } | null): string[] {
  if (!x) return ["not known", "the recording does not say what the thread did here"];
  const s = sharesOf(x.word);
  const share = (n: number, text: string) => (n === 255 ? text : n > 0 ? `${text} ${percent(n / 255)}` : "");
  const minor = x.faults & 0xffff;
  const major = x.faults >>> 16;
  return [
    [share(s.running, "on a processor"), share(s.ready, "ready"), share(s.blocked, s.uninterruptible === s.blocked ? "blocked, uninterruptible (state D)" : "blocked")].filter(Boolean).join(", ") || "not known",
    duration(x.duration),
    minor > 0 ? plural(minor, "page fault") + " without input" : "",
    major > 0 ? plural(major, "page fault") + " with input (major)" : "",
  ].filter(Boolean);
}

// Stretches all of which is one state.
const allRunning = 0x000000ff;
const allReady = 0x0000ff00;
const allBlocked = 0x00ff0000;
const allUninterruptible = 0xffff0000 | 0;

// What each piece is seen of: finer ones hide those before them.
function seen(pieces: StatePiece[]): [States, Span][] {
  const out: [States, Span][] = [];
  pieces.forEach((p, i) => {
    if (!p.states) return;
    for (const span of unknownIn(p.span, pieces.slice(i + 1).flatMap((q) => (q.states ? [q.span] : [])))) out.push([p.states, span]);
  });
  return out;
}

/** paintStates paints the row of states into the lines y0 to y1-1, and returns how many stretches. Where nothing is known it has dots. */
export function paintStates(r: Raster, y0: number, y1: number, ground: Uint32Array, pieces: StatePiece[], s: Scheme): number {
  r.fill(y0, y1, ground);
  const top = Math.max(0, y0);
  const bottom = Math.min(r.height, y1);
  if (top >= bottom) return 0;
  const { pixels, width } = r;
  const height = y1 - y0;
  const middle = (y0 + y1) >> 1;
  if (middle >= top && middle < bottom) for (let x = 0; x < width; x += 4) pixels[middle * width + x] = s.rule;
  const c = s.states;
  const line = (y: number, x0: number, x1: number, color: Bytes) => {
    if (y < top || y >= bottom) return;
    if (x1 - x0 === 1) pixels[y * width + x0] = color;
    else pixels.fill(color, y * width + x0, y * width + x1);
  };
  const lines = (share: number) => (share === 0 ? 0 : Math.max(1, Math.round((height * share) / 255)));
  let painted = 0;
  const ticks: [number, number][] = [];
  for (const [states, span] of seen(pieces)) {
    const { start, duration, shares, faults } = states;
    const [from, to] = [Math.max(r.start, span.from), Math.min(r.end, span.to)];
    let last = -1; // painted, as after zooming out a pixel has many
    for (let i = firstEndingAfter(states, from); i < start.length && start[i] < to; i++) {
      const x0 = Math.max(r.column(start[i]), last);
      const x1 = Math.min(width, Math.max(r.column(start[i] + duration[i]), r.column(start[i]) + 1));
      if (faults[i] > 0) ticks.push([r.column(start[i]), faults[i]]);
      if (x1 <= x0) continue;
      last = x1;
      painted++;
      const w = shares[i] | 0;
      const whole = w === allRunning ? c.running : w === allReady ? c.ready : w === allBlocked ? c.blocked : w === allUninterruptible ? c.uninterruptible : 0;
      if (whole !== 0) {
        for (let y = top; y < bottom; y++) line(y, x0, x1, whole);
        continue;
      }
      // From below: on a processor, ready, state D, blocked.
      let y = y1;
      const part = (n: number, color: Bytes) => {
        for (; n > 0 && y > y0; n--) line(--y, x0, x1, color);
      };
      part(lines(w & 255), c.running);
      part(lines((w >>> 8) & 255), c.ready);
      part(lines(w >>> 24), c.uninterruptible);
      const known = (w & 255) + ((w >>> 8) & 255) + ((w >>> 16) & 255);
      part(known > 245 ? height : lines(((w >>> 16) & 255) - (w >>> 24)), c.blocked);
    }
  }
  for (const [x, n] of ticks) {
    const major = n >>> 16 > 0;
    const end = major ? y1 : y0 + Math.ceil(height * 0.4);
    for (let y = y0; y < end; y++) line(y, x, Math.min(width, x + (major ? 2 : 1)), major ? c.major : c.minor);
  }
  return painted;
}

// Narrower stretches are not hatched, in CSS pixels. A thread may wake up for a moment in a pixel that counts as waiting.
const hatchedFrom = 3;
const nearlyAll = 235; // of 255

// What a thread did in a stretch, for hatching.
const waitKind = (w: number): number => (((w >>> 16) & 255) >= nearlyAll ? (w >>> 24 >= nearlyAll ? 2 : 1) : ((w >>> 8) & 255) >= nearlyAll ? 3 : 0);

/** paintWaits hatches calls, which are painted in the lines y0 to y1-1, where their thread was blocked or ready, and returns in how many stretches. */
export function paintWaits(r: Raster, y0: number, y1: number, ground: Uint32Array, pieces: StatePiece[], s: Scheme, ratio: number): number {
  const top = Math.max(0, y0);
  const bottom = Math.min(r.height, y1);
  let hatched = 0;
  if (top >= bottom) return 0;
  const thick = Math.max(1, Math.round(ratio));
  for (const [states, span] of seen(pieces)) {
    const { start, duration, shares } = states;
    const [from, to] = [Math.max(r.start, span.from), Math.min(r.end, span.to)];
    for (let i = firstEndingAfter(states, from); i < start.length && start[i] < to; ) {
      const kind = waitKind(shares[i]);
      const begin = Math.max(start[i], from);
      let end = start[i] + duration[i];
      // Neighbours of the same kind are one stretch.
      for (i++; kind !== 0 && i < start.length && start[i] <= end && start[i] < to && waitKind(shares[i]) === kind; i++) end = start[i] + duration[i];
      if (kind === 0) continue;
      const [x0, x1] = [r.column(begin), r.column(Math.min(end, to))];
      if (x1 - x0 <= hatchedFrom * ratio) continue;
      hatched++;
      if (kind === 3) r.stripes(top, bottom, x0, x1, ground, s.states.ready, 0.75, -1, 10 * thick, thick);
      else r.stripes(top, bottom, x0, x1, ground, kind === 2 ? s.states.uninterruptible : s.wait, 0.6, 1, 5 * thick, thick);
    }
  }
  return hatched;
}
