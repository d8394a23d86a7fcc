// The visible range: the time that a view shows, and how it moves.

export interface Span {
  from: number; // ns
  to: number; // ns
}

/** shortest is the narrowest visible range, in ns: clocks tick no finer. */
export const shortest = 20;

export function length(s: Span): number {
  return s.to - s.from;
}

/** clamp moves and shortens the range so that it lies within bounds. */
export function clamp(s: Span, bounds: Span): Span {
  const whole = Math.max(length(bounds), shortest);
  const len = Math.min(Math.max(length(s), shortest), whole);
  // Rounding may have taken a little of it.
  if (len >= whole * (1 - 1e-9)) return { from: bounds.from, to: bounds.from + whole };
  const middle = (s.from + s.to) / 2;
  let from = length(s) === len ? s.from : middle - len / 2;
  from = Math.min(Math.max(from, bounds.from), bounds.from + whole - len);
  return { from, to: from + len };
}

/** zoom makes the range factor times as long; what is at the instant stays where it is. */
export function zoom(s: Span, at: number, factor: number, bounds: Span): Span {
  const whole = Math.max(length(bounds), shortest);
  const len = Math.min(Math.max(length(s) * factor, shortest), whole);
  const share = (at - s.from) / length(s);
  const from = at - share * len;
  return clamp({ from, to: from + len }, bounds);
}

export function pan(s: Span, by: number, bounds: Span): Span {
  return clamp({ from: s.from + by, to: s.to + by }, bounds);
}

/** around is a range that shows the span with a margin at its sides. */
export function around(s: Span, bounds: Span, margin = 0.12): Span {
  const len = Math.max(length(s), 1);
  return clamp({ from: s.from - len * margin, to: s.to + len * margin }, bounds);
}

/** approach is the range on its way to target after ms milliseconds: both edges near it exponentially, so that the point zoomed at stays where it is. */
export function approach(now: Span, target: Span, ms: number): Span {
  const k = 1 - Math.exp(-ms / 55);
  const next = { from: now.from + (target.from - now.from) * k, to: now.to + (target.to - now.to) * k };
  const near = length(target) / 4000;
  const there = Math.abs(next.from - target.from) < near && Math.abs(next.to - target.to) < near;
  return there ? target : next;
}

export function same(a: Span, b: Span): boolean {
  return a.from === b.from && a.to === b.to;
}
