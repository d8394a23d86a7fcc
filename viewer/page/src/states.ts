// What threads did, in a thin row above their calls: on a processor, ready or blocked, with page faults as
// ticks. Calls are hatched where their thread was blocked, and less densely where it was ready.

import type { Scheme } from "./color";
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

/** SeenStates is what an answer has to say of a thread's states, and where that is seen. */
export type SeenStates = [States, Span];

/** seenStates is what each piece is seen of: finer ones hide those before them. */
export function seenStates(pieces: StatePiece[]): SeenStates[] {
  const out: SeenStates[] = [];
  pieces.forEach((p, i) => {
    if (!p.states) return;
    for (const span of unknownIn(p.span, pieces.slice(i + 1).flatMap((q) => (q.states ? [q.span] : [])))) out.push([p.states, span]);
  });
  return out;
}

/**
 * paintStates paints the row of states into the lines y0 to y1-1, and returns how many stretches. Where nothing is known it has dots.
 * All lanes have thousands of stretches a frame, so there is nothing here that has to be called or made for each.
 */
export function paintStates(r: Raster, y0: number, y1: number, ground: Uint32Array, seen: SeenStates[], s: Scheme): number {
  r.fill(y0, y1, ground);
  const top = Math.max(0, y0);
  const bottom = Math.min(r.height, y1);
  if (top >= bottom) return 0;
  const { pixels, width } = r;
  const middle = (y0 + y1) >> 1;
  if (middle >= top && middle < bottom) for (let x = 0; x < width; x += 4) pixels[middle * width + x] = s.rule;
  const { running, ready, blocked, uninterruptible } = s.states;
  const [toUninterruptible, toReady, toRunning] = [blocked ^ uninterruptible, uninterruptible ^ ready, ready ^ running];
  const lines = r.linesOfShares(y1 - y0);
  let painted = 0;
  let ticks: Uint8Array | null = null; // by columns: 1 for page faults, 2 with input
  for (const [states, span] of seen) {
    const { start, duration, shares, faults } = states;
    const n = start.length;
    const [from, to] = [Math.max(r.start, span.from), Math.min(r.end, span.to)];
    let last = -1; // painted, as after zooming out a pixel has many
    for (let i = firstEndingAfter(states, from); i < n && start[i] < to; i++) {
      const left = r.column(start[i]);
      const end = r.column(start[i] + duration[i]);
      if (faults[i] > 0 && left < width) (ticks ??= new Uint8Array(width))[left] |= faults[i] >>> 16 > 0 ? 2 : 1;
      const x0 = left > last ? left : last;
      const x1 = end > left ? end : left < width ? left + 1 : width;
      if (x1 <= x0) continue;
      last = x1;
      painted++;
      const w = shares[i] | 0;
      if (w === allRunning || w === allReady || w === allBlocked || w === allUninterruptible) {
        const color = w === allRunning ? running : w === allReady ? ready : w === allBlocked ? blocked : uninterruptible;
        for (let y = top; y < bottom; y++) pixels.fill(color, y * width + x0, y * width + x1);
        continue;
      }
      // From below: on a processor, ready, state D, blocked.
      const [a, b, c, d] = [w & 255, (w >>> 8) & 255, (w >>> 16) & 255, w >>> 24];
      const overRunning = y1 - lines[a];
      const overReady = overRunning - lines[b];
      const overUninterruptible = overReady - lines[d];
      const overBlocked = a + b + c > 245 ? y0 : overUninterruptible - lines[Math.max(0, c - d)];
      const stop = overBlocked > top ? overBlocked : top;
      const narrow = x1 - x0 === 1;
      for (let y = stop, at = stop * width + x0; y < bottom; y++, at += width) {
        // Each mask is all bits from its line on. Without conditions, which a processor can't foresee.
        const color = blocked ^ (toUninterruptible & ((overUninterruptible - 1 - y) >> 31)) ^ (toReady & ((overReady - 1 - y) >> 31)) ^ (toRunning & ((overRunning - 1 - y) >> 31));
        if (narrow) pixels[at] = color;
        else pixels.fill(color, at, at + x1 - x0);
      }
    }
  }
  if (ticks) paintFaults(r, y0, y1, ticks, s);
  return painted;
}

function paintFaults(r: Raster, y0: number, y1: number, ticks: Uint8Array, s: Scheme) {
  const { pixels, width } = r;
  const top = Math.max(0, y0);
  const minorEnd = Math.min(r.height, y0 + Math.ceil((y1 - y0) * 0.4));
  const majorEnd = Math.min(r.height, y1);
  for (let x = 0; x < width; x++) {
    if (ticks[x] === 0) continue;
    const major = ticks[x] > 1;
    const [end, color] = major ? [majorEnd, s.states.major] : [minorEnd, s.states.minor];
    for (let y = top; y < end; y++) {
      pixels[y * width + x] = color;
      if (major && x + 1 < width) pixels[y * width + x + 1] = color;
    }
  }
}

// Narrower stretches are not hatched, in CSS pixels. A thread may wake up for a moment in a pixel that counts as waiting.
const hatchedFrom = 3;
const nearlyAll = 235; // of 255

// What a thread did in a stretch, for hatching.
const waitKind = (w: number): number => (((w >>> 16) & 255) >= nearlyAll ? (w >>> 24 >= nearlyAll ? 2 : 1) : ((w >>> 8) & 255) >= nearlyAll ? 3 : 0);

/** paintWaits hatches calls, which are painted in the lines y0 to y1-1, where their thread was blocked or ready, and returns in how many stretches. */
export function paintWaits(r: Raster, y0: number, y1: number, ground: Uint32Array, seen: SeenStates[], s: Scheme, ratio: number): number {
  const top = Math.max(0, y0);
  const bottom = Math.min(r.height, y1);
  let hatched = 0;
  if (top >= bottom) return 0;
  const thick = Math.max(1, Math.round(ratio));
  const least = (hatchedFrom * ratio * (r.end - r.start)) / r.width / 2; // what is shorter can't be wide enough, ns
  for (const [states, span] of seen) {
    const { start, duration, shares } = states;
    const n = start.length;
    const [from, to] = [Math.max(r.start, span.from), Math.min(r.end, span.to)];
    for (let i = firstEndingAfter(states, from); i < n && start[i] < to; ) {
      const kind = waitKind(shares[i]);
      if (kind === 0) {
        i++;
        continue;
      }
      const begin = start[i] > from ? start[i] : from;
      let end = start[i] + duration[i];
      // Neighbours of the same kind are one stretch.
      for (i++; i < n && start[i] <= end && start[i] < to && waitKind(shares[i]) === kind; i++) end = start[i] + duration[i];
      if (end - begin < least) continue;
      const [x0, x1] = [r.column(begin), r.column(Math.min(end, to))];
      if (x1 - x0 <= hatchedFrom * ratio) continue;
      hatched++;
      if (kind === 3) r.stripes(top, bottom, x0, x1, ground, s.states.ready, 0.75, -1, 10 * thick, thick);
      else r.stripes(top, bottom, x0, x1, ground, kind === 2 ? s.states.uninterruptible : s.wait, 0.6, 1, 5 * thick, thick);
    }
  }
  return hatched;
}
