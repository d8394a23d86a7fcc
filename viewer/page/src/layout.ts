// Where lanes stand: one below the other, each as high as its rows. Heights are CSS pixels.

import type { Lane } from "./types";

export interface Slot {
  lane: Lane;
  index: number;
  top: number;
  height: number; // with its padding
  rows: number; // that are shown
  collapsed: boolean;
  strip: number; // what the row of states takes above the others; 0: there is none
  spans: number; // rows of spans that are shown, between states and calls
  graph: boolean; // it is a counter
}

/** What one screen shows of a lane: rows First to First+Count-1. */
export interface Stretch {
  lane: number;
  first: number;
  count: number;
  spans?: { first: number; count: number }; // rows of what the program said
}

export const padding = 4; // above and below a lane's rows
const least = 38; // a lane's name needs that much

/** stripHeight is that of the row of states, and stripSpace with what is free below it. */
export const stripHeight = 8;
const stripSpace = stripHeight + 2;

/** graphHeight is that of a counter. */
export const graphHeight = 44;
const belowSpans = 3; // between spans and calls

/** firstTrack is the first track's place among lanes. */
export const firstTrack = 0x80000000;

export class Layout {
  readonly slots: Slot[] = [];
  readonly byLane = new Map<number, Slot>();
  readonly height: number;
  readonly spanRow: number; // height of a row of spans

  constructor(
    lanes: Lane[],
    readonly row: number,
    collapsed: ReadonlySet<number>,
    said = true, // what the program said is shown
  ) {
    this.spanRow = Math.max(8, row);
    let top = 0;
    lanes.forEach((lane, index) => {
      const closed = collapsed.has(lane.id);
      const rows = closed ? Math.min(1, lane.rows) : lane.rows;
      const strip = lane.states ? stripSpace : 0;
      const graph = lane.track?.kind === "counter";
      const all = said && !graph ? Math.max(lane.spans ?? 0, lane.instants ? 1 : 0) : 0;
      const spans = closed ? Math.min(1, all) : all;
      const inner = graph ? graphHeight : rows * row + strip + spans * this.spanRow + (spans > 0 && rows > 0 ? belowSpans : 0);
      const height = Math.max(least, inner + 2 * padding);
      const slot = { lane, index, top, height, rows, collapsed: closed, strip, spans, graph };
      this.slots.push(slot);
      this.byLane.set(lane.id, slot);
      top += height;
    });
    this.height = top;
  }

  /** at is the slot at y, or the last one above it. */
  at(y: number): Slot | undefined {
    let lo = 0;
    let hi = this.slots.length;
    while (lo < hi) {
      const mid = (lo + hi) >>> 1;
      if (this.slots[mid].top <= y) lo = mid + 1;
      else hi = mid;
    }
    return this.slots[Math.max(0, lo - 1)];
  }

  /** between are the slots that have a part in [top, bottom). */
  between(top: number, bottom: number): Slot[] {
    const first = this.at(top);
    if (!first) return [];
    let end = first.index;
    while (end < this.slots.length && this.slots[end].top < bottom) end++;
    return this.slots.slice(first.index, end);
  }

  /** stretches are the rows that have a part in [top, bottom). */
  stretches(top: number, bottom: number): Stretch[] {
    const out: Stretch[] = [];
    for (const s of this.between(top, bottom)) {
      const first = Math.max(0, Math.floor((top - this.rowTop(s, 0)) / this.row));
      const end = Math.min(s.rows, Math.ceil((bottom - this.rowTop(s, 0)) / this.row));
      const spans = s.graph ? { first: 0, count: 1 } : s.spans > 0 ? { first: 0, count: s.spans } : undefined;
      if (end > first) out.push({ lane: s.lane.id, first, count: end - first, ...(spans && { spans }) });
      else if (s.strip > 0 || spans) out.push({ lane: s.lane.id, first: 0, count: 0, ...(spans && { spans }) });
    }
    return out;
  }

  /** rowTop is where a row begins. */
  rowTop(s: Slot, row: number): number {
    return s.top + padding + s.strip + s.spans * this.spanRow + (s.spans > 0 && s.rows > 0 ? belowSpans : 0) + row * this.row;
  }

  /** spanTop is where a row of spans begins. */
  spanTop(s: Slot, row: number): number {
    return s.top + padding + s.strip + row * this.spanRow;
  }

  /** spanAt is the row of spans of a slot at y, or -1. */
  spanAt(s: Slot, y: number): number {
    const row = Math.floor((y - this.spanTop(s, 0)) / this.spanRow);
    return row >= 0 && row < s.spans ? row : -1;
  }

  /** stripTop is where the row of states begins. */
  stripTop(s: Slot): number {
    return s.top + padding - 1;
  }

  /** inStrip says whether y is in the row of states. */
  inStrip(s: Slot, y: number): boolean {
    return s.strip > 0 && y >= s.top && y < s.top + padding + s.strip - 1;
  }

  /** rowAt is the row of a slot at y, or -1. */
  rowAt(s: Slot, y: number): number {
    const row = Math.floor((y - this.rowTop(s, 0)) / this.row);
    return row >= 0 && row < s.rows ? row : -1;
  }
}

export const sorts: Record<string, { title: string; compare: (a: Lane, b: Lane) => number }> = {
  activity: { title: "busiest first", compare: (a, b) => b.calls - a.calls },
  start: { title: "by start", compare: (a, b) => a.start_ns - b.start_ns },
  name: { title: "by name", compare: (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0) },
  id: { title: "by number", compare: (a, b) => a.pid - b.pid || a.tid - b.tid || a.goroutine - b.goroutine },
};

/** sorted puts tracks first, and lanes without calls last; what is equal is in order of numbers. */
export function sorted(lanes: Lane[], by: string): Lane[] {
  const { compare } = Object.hasOwn(sorts, by) ? sorts[by] : sorts.activity;
  return [...lanes].sort(
    (a, b) => tracksFirst(a, b) || Number(idle(a)) - Number(idle(b)) || compare(a, b) || sorts.id.compare(a, b) || a.id - b.id,
  );
}

function idle(l: Lane): boolean {
  return l.calls === 0 && !l.spans && !l.instants;
}

// Counters are above asynchronous spans, both above threads, in order of their names.
function tracksFirst(a: Lane, b: Lane): number {
  const order = (l: Lane) => (l.track ? ["counter", "async", "spans"].indexOf(l.track.kind) : 9);
  return order(a) - order(b) || (a.track && b.track ? (a.name < b.name ? -1 : a.name > b.name ? 1 : a.id - b.id) : 0);
}

/** title is how a lane is called where there is one line for it. */
export function title(lane: Lane): string {
  if (lane.name) return lane.name;
  if (lane.kind === "goroutine") return `goroutine ${lane.goroutine}`;
  return `thread ${lane.tid}`;
}

/** number says which thread or goroutine a lane is. */
export function number(lane: Lane): string {
  if (lane.track) return { async: "asynchronous", counter: "counter", spans: "spans" }[lane.track.kind] + (lane.track.pid ? ` of ${lane.track.pid}` : "");
  return lane.kind === "goroutine" ? `g ${lane.goroutine}` : `tid ${lane.tid}`;
}
