// What the program said: spans in rows between the states and the calls of a thread, instants as ticks over them,
// counters as graphs.

import type { Bytes, Scheme } from "./color";
import { spanShades, type Shade } from "./color";
import { firstEndingAfter, flags, type Graph, type Row } from "./decode";
import { count, duration, plural } from "./format";
import { shown } from "./names";
import { Palette } from "./palette";
import type { Piece, Raster } from "./raster";
import type { Answer } from "./source";
import type { Mark, Track } from "./types";
import { unknownIn } from "./unknown";
import type { Span } from "./viewport";

/** SaidBar is what is drawn at a place: a span, or several merged ones, an instant, or a counter's value. */
export interface SaidBar {
  kind: "span" | "instant" | "value";
  lane: number;
  row: number;
  start: number;
  duration: number;
  busy: number;
  title: number;
  count: number;
  flags: number;
  value?: { least: number; most: number; last: number };
}

/** SpanPalettes are the colours of spans: a pale body, and a line above it. */
export class SpanPalettes {
  readonly body: Palette;
  readonly line: Palette;

  constructor(
    name: (title: number) => string | undefined,
    s: Scheme,
    readonly match: ReadonlySet<number> | null,
  ) {
    const unknown = spanShades("", s);
    const of = (which: "body" | "line") => {
      const made = new Map<number, Shade>();
      return new Palette(
        (title) => {
          const n = name(title);
          if (n === undefined) return unknown[which];
          let shade = made.get(title);
          if (!shade) made.set(title, (shade = spanShades(n, s)[which]));
          return shade;
        },
        match,
        unknown[which],
      );
    };
    this.body = of("body");
    this.line = of("line");
  }

  namesArrived() {
    this.body.namesArrived();
    this.line.namesArrived();
  }
}

/** paintSpans paints a row of spans into the lines y0 to y1-1. */
export function paintSpans(r: Raster, y0: number, y1: number, ground: Uint32Array, pieces: Piece[], p: SpanPalettes, least: number, ratio: number) {
  const thick = Math.max(1, Math.round(ratio * 2));
  r.row(y0, y1, ground, pieces, p.body, least);
  const bars = r.bars;
  r.row(y0, Math.min(y1, y0 + thick), ground, pieces, p.line, Infinity);
  r.bars = bars;
}

/** paintTicks paints instants into the lines y0 to y1-1, and returns how many. */
export function paintTicks(r: Raster, y0: number, y1: number, rows: [Row, Span][], color: Bytes, ratio: number): number {
  const top = Math.max(0, y0);
  const bottom = Math.min(r.height, y1);
  let painted = 0;
  if (top >= bottom) return 0;
  const head = Math.max(2, Math.round(3 * ratio)); // a small triangle above the line
  for (const [row, span] of rows) {
    const { start } = row;
    const [from, to] = [Math.max(r.start, span.from), Math.min(r.end, span.to)];
    const columns: number[] = [];
    for (let i = firstStartingAt(start, from); i < start.length && start[i] < to; i++) {
      const x = r.column(start[i]);
      if (x !== columns[columns.length - 1] && x < r.width) columns.push(x);
    }
    painted += columns.length;
    columns.forEach((x, i) => {
      // Where they crowd they would hide the spans: they are short there.
      const crowded = x - (columns[i - 1] ?? -Infinity) <= 2 * head || (columns[i + 1] ?? Infinity) - x <= 2 * head;
      const end = crowded ? Math.min(bottom, y0 + Math.max(2, (y1 - y0) >> 2)) : bottom;
      for (let y = top; y < end; y++) {
        const wide = crowded ? 0 : Math.max(0, head - (y - y0));
        for (let k = Math.max(0, x - wide); k <= x + wide && k < r.width; k++) r.pixels[y * r.width + k] = color;
      }
    });
  }
  return painted;
}

export function firstStartingAt(start: Float64Array, at: number): number {
  let lo = 0;
  let hi = start.length;
  while (lo < hi) {
    const mid = (lo + hi) >>> 1;
    if (start[mid] < at) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

/** scaleOf is what a counter's graph reaches from and to: from zero, if that is not far from what it was. */
export function scaleOf(t: { min?: number; max?: number }): { from: number; to: number } {
  let [from, to] = [t.min ?? 0, t.max ?? 0];
  if (from > 0 && from <= to / 2) from = 0;
  if (to < 0 && to >= from / 2) to = 0;
  return to > from ? { from, to } : { from: from - 1, to: to + 1 };
}

/** paintGraph paints a counter into the lines y0 to y1-1, and returns in how many columns. A column that had several values has a line from the least to the most. */
export function paintGraph(r: Raster, y0: number, y1: number, pieces: [Graph, Span][], scale: { from: number; to: number }, [line, area]: [Bytes, Bytes], ratio: number): number {
  const top = Math.max(0, y0);
  const bottom = Math.min(r.height, y1);
  const height = y1 - y0 - 1;
  const thick = Math.max(1, Math.round(ratio));
  let painted = 0;
  if (top >= bottom) return 0;
  // Halves, as the scale may be as wide as numbers get.
  const half = scale.to / 2 - scale.from / 2;
  const share = (v: number) => Math.min(1, Math.max(0, (v / 2 - scale.from / 2) / half));
  const yOf = (v: number) => y1 - 1 - Math.round(height * share(v));
  const zero = yOf(Math.min(Math.max(0, scale.from), scale.to));
  const { pixels, width } = r;
  const column = (x: number, a: number, b: number, color: Bytes) => {
    for (let y = Math.max(top, a); y < Math.min(bottom, b); y++) pixels[y * width + x] = color;
  };
  for (const [g, span] of pieces) {
    const [from, to] = [Math.max(r.start, span.from), Math.min(r.end, span.to)];
    if (to <= from) continue;
    const n = g.start.length;
    let i = Math.max(0, firstStartingAt(g.start, from) - 1);
    let before = Number.NaN;
    for (; i < n && g.start[i] < to; i++) {
      const x0 = r.column(Math.max(g.start[i], from));
      const x1 = i + 1 < n ? r.column(Math.min(g.start[i + 1], to)) : r.column(to);
      const y = yOf(g.last[i]);
      for (let x = x0; x < Math.max(x1, x0 + 1) && x < width; x++) {
        column(x, Math.min(y, zero), Math.max(y, zero) + 1, area);
        column(x, y, y + thick, line);
      }
      // What it was in the meantime, and from where it came.
      if (x0 < width) {
        const [a, b] = [yOf(g.most[i]), yOf(g.least[i])];
        const held = g.start[i] < from ? y : Number.isNaN(before) ? a : before;
        column(x0, Math.min(a, held), Math.max(b, held) + thick, line);
      }
      before = y;
      painted++;
    }
  }
  return painted;
}

/** seenOf is what each of some answers is seen of: finer ones hide those before them. */
export function seenOf<T>(answers: Answer[], lane: number, get: (a: Answer) => T | null | undefined): [T, Span][] {
  const asked = answers.filter((a) => a.rows.get(lane)?.spans);
  return asked.flatMap((a, i) => {
    const x = get(a);
    if (!x) return [];
    return unknownIn(a.span, asked.slice(i + 1).map((b) => b.span)).map((span): [T, Span] => [x, span]);
  });
}

/** openEdges are where spans begin or end that aren't known to: instants, and to which side it goes on. */
export function openEdges(row: Row, visible: Span): { at: number; left: boolean; width: number }[] {
  const out: { at: number; left: boolean; width: number }[] = [];
  const f = row.flags;
  if (!f) return out;
  for (let i = firstEndingAfter(row, visible.from); i < row.start.length && row.start[i] < visible.to && out.length < 500; i++) {
    if (row.calls[i] > 1) continue;
    if (f[i] & flags.unstarted) out.push({ at: row.start[i], left: true, width: row.duration[i] });
    if (f[i] & flags.unfinished) out.push({ at: row.start[i] + row.duration[i], left: false, width: row.duration[i] });
  }
  return out;
}

/** value writes a counter's value. */
export function value(v: number): string {
  if (!Number.isFinite(v)) return "–";
  if (Number.isInteger(v) && Math.abs(v) < 1e15) return (v < 0 ? "−" : "") + count(Math.abs(v));
  return String(Number(v.toPrecision(6))).replace("-", "−");
}

/** saidLines are the lines that tell about a bar. */
export function saidLines(b: SaidBar, name: string | undefined, category: string | undefined): string[] {
  const title = name === undefined ? "…" : shown(name, 160);
  const where = category ? shown(category, 80) : "";
  if (b.kind === "value") {
    const v = b.value!;
    return [`${title}: ${value(v.last)}`, v.least < v.most ? `here from ${value(v.least)} to ${value(v.most)}, ${plural(b.count, "value")}` : "", where].filter(Boolean);
  }
  if (b.kind === "instant") return [b.count > 1 ? `${plural(b.count, "instant")}, the first: ${title}` : title, b.count > 1 ? "" : "instant", where].filter(Boolean);
  if (b.flags & flags.several) return [plural(b.count, "further span"), "there is no room to show them one by one", `the longest: ${title}`];
  if (b.count > 1) return [`${plural(b.count, "span")}, total ${duration(b.busy)}`, `too narrow to be drawn one by one, within ${duration(b.duration)}`, `the longest: ${title}`, where].filter(Boolean);
  return [title, `span, ${duration(b.duration)}`, b.flags & flags.unstarted ? "its beginning is not in the recording" : "", b.flags & flags.unfinished ? "its end is not in the recording" : "", where].filter(Boolean);
}

/** valueLines are a mark's arguments for a tooltip. */
export function valueLines(m: Mark): string[] {
  return [...(m.arguments ?? []), ...(m.results ?? [])].slice(0, 12).map((a) => `${shown(a.name, 60)} = ${shown(a.value, 160)}`);
}

/** trackFacts says what a track is. */
export function trackFacts(t: Track): string {
  const parts = [t.kind === "counter" ? `${plural(t.count, "value")}, ${value(t.min ?? 0)} to ${value(t.max ?? 0)}` : plural(t.count, t.kind === "async" ? "asynchronous span" : "span")];
  if (t.more) parts.push(`${plural(t.more, "span")} in the last row together`);
  if (t.category) parts.push(shown(t.category, 80));
  return parts.join(" · ");
}
