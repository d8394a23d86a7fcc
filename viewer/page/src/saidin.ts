// What the program said at a place of the screen.

import { firstEndingAfter } from "./decode";
import type { Layout, Slot } from "./layout";
import { firstStartingAt, type SaidBar } from "./said";
import type { Answer } from "./source";
import { length, type Span } from "./viewport";

/** saidIn is what is at an instant, y in the lanes; an instant is hit three pixels to either side. */
export function saidIn(answers: Answer[], layout: Layout, slot: Slot, y: number, at: number, pixel: number): SaidBar | null {
  const said = answers.filter((a) => a.span.from <= at && a.span.to >= at && a.rows.get(slot.lane.id)?.spans).at(-1)?.lanes.get(slot.lane.id)?.said;
  if (!said) return null;
  const lane = slot.lane.id;
  if (slot.graph) {
    const g = said.graph;
    const i = g ? firstStartingAt(g.start, at + pixel / 2) - 1 : -1;
    if (!g || i < 0) return null;
    const end = i + 1 < g.start.length ? g.start[i + 1] : Math.max(at, g.start[i]);
    const value = { least: g.least[i], most: g.most[i], last: g.last[i] };
    return { kind: "value", lane, row: 0, start: g.start[i], duration: end - g.start[i], busy: 0, title: slot.lane.track!.title, count: g.values[i], flags: 0, value };
  }
  const row = layout.spanAt(slot, y);
  if (row < 0) return null;
  const near = (reach: number, r: { start: Float64Array; duration: Float64Array } | null | undefined) => {
    if (!r) return -1;
    const i = firstEndingAfter(r, at - reach);
    if (i >= r.start.length || r.start[i] > at + reach) return -1;
    return i + 1 < r.start.length && r.start[i] + r.duration[i] < at && r.start[i + 1] <= at ? i + 1 : i;
  };
  const i = row === 0 ? near(3 * pixel, said.instants) : -1;
  if (i >= 0) {
    const x = said.instants!;
    return { kind: "instant", lane, row, start: x.start[i], duration: x.duration[i], busy: 0, title: x.func[i], count: x.calls[i], flags: 0 };
  }
  const r = said.spans.get(row);
  const k = near(1.5 * pixel, r);
  if (!r || k < 0) return null;
  return { kind: "span", lane, row, start: r.start[k], duration: r.duration[k], busy: r.busy[k], title: r.func[k], count: r.calls[k], flags: r.flags?.[k] ?? 0 };
}

/** saidAround is a span near the middle of what is shown, for those who have no pointer. */
export function saidAround(answers: Answer[], layout: Layout, y: Span, shown: Span, width: number): SaidBar | null {
  for (const reach of [1.5 / width, 0.02, 0.1, 0.5]) {
    for (const slot of layout.between(y.from, y.to)) {
      if (slot.spans === 0) continue;
      const bar = saidIn(answers, layout, slot, layout.spanTop(slot, 0) + layout.spanRow / 2, (shown.from + shown.to) / 2, (reach * length(shown)) / 1.5);
      if (bar) return bar;
    }
  }
  return null;
}
