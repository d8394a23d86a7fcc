// What no answer speaks of yet: it must not look as if nothing had been called there.

import { length, type Span } from "./viewport";

/** unknownIn are the stretches of a range that none of the spans covers. */
export function unknownIn(w: Span, spans: Span[]): Span[] {
  if (spans.some((s) => s.from <= w.from && s.to >= w.to)) return [];
  const out: Span[] = [];
  let from = w.from;
  for (const s of [...spans].sort((a, b) => a.from - b.from)) {
    if (s.from > from) out.push({ from, to: Math.min(s.from, w.to) });
    from = Math.max(from, s.to);
    if (from >= w.to) break;
  }
  if (from < w.to) out.push({ from, to: w.to });
  return out.filter((s) => length(s) > 0);
}
