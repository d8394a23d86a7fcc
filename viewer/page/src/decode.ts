// The answer of api/view: little-endian, everything on 8 bytes; see viewer's doc.go.
// It is read as it comes: only what is kept of it takes memory.

import { columnsOf, type Grid } from "./columns";

/** Row holds the bars of one row in order of time. */
export interface Row {
  start: Float64Array; // ns
  duration: Float64Array; // ns
  busy: Float32Array; // ns in calls, of a merged bar less than its duration
  func: Uint32Array; // of a merged bar the one with most time; 0: unknown
  calls: Uint32Array; // 1: that very call
  columns: Uint32Array | null; // of a row with many bars: what each column of the answer's grid shows
  flags?: Uint8Array; // of spans: see flags
}

/** flags of spans: their beginning, or their end, isn't in the reel; several that there was no room for lie over each other. */
export const flags = { unstarted: 1, unfinished: 2, several: 4 };

export interface Gaps {
  start: Float64Array; // ns
  end: Float64Array; // ns
  events: Float64Array;
}

/** States is what a lane's thread did, in order of time: stretches of one state, and pixels of several. */
export interface States {
  start: Float64Array; // ns
  duration: Float64Array; // ns
  shares: Uint32Array; // bytes, the lowest first: on a processor, ready, blocked, of that in state D; 255: all of it
  faults: Uint32Array; // page faults: below those that needed no input, above those that did
}

/** Graph is a counter, in order of time: from each start on it was between least and most, and then last. */
export interface Graph {
  start: Float64Array; // ns
  least: Float64Array;
  most: Float64Array;
  last: Float64Array;
  values: Uint32Array; // how many it is of
}

/** Said is what the program said on a lane or a track. func is a title there. */
export interface Said {
  spans: Map<number, Row>;
  steps: Map<number, Row>; // of asynchronous spans
  instants: Row | null;
  graph: Graph | null;
}

export interface LaneBars {
  rows: Map<number, Row>;
  gaps: Gaps | null;
  states: States | null;
  said?: Said;
}

export type Lanes = Map<number, LaneBars>;

const magic = 0x57564c43;
const stateRow = 0xffffffff;
const instantRow = 0xfffffffe;
const counterRow = 0xfffffffd;
const stepRow = 0xc0000000;
const spanRow = 0x80000000; // and more
const largest = 1 << 26; // bytes of a block, that no answer of ours has

/** Reader takes an answer piece by piece; it throws if the bytes do not make sense. */
export class Reader {
  private lanes: Lanes = new Map();
  private bytes = new Uint8Array(1 << 18); // not yet understood, from 8 bytes' boundary on
  private have = 0;
  private done = 0; // bytes, understood
  private blocks = -1; // still to come; -1: the head is

  constructor(private grid: Grid | null) {}

  push(chunk: Uint8Array) {
    this.grow(this.have + chunk.length);
    this.bytes.set(chunk, this.have);
    this.have += chunk.length;
    const view = new DataView(this.bytes.buffer);
    let at = 0;
    if (this.blocks < 0) {
      if (this.have < 8) return;
      if (view.getUint32(0, true) !== magic) throw new Error("view: not an answer of this version");
      this.blocks = view.getUint32(4, true);
      at = 8;
    }
    for (; this.blocks > 0 && this.have - at >= 16; this.blocks--) {
      const size = sizeOf(view, at);
      if (size > largest) throw new Error(`view: a block of ${size} bytes at byte ${this.done + at}`);
      if (this.have - at < size) break;
      this.block(view, at);
      at += size;
    }
    this.bytes.copyWithin(0, at, this.have);
    this.have -= at;
    this.done += at;
  }

  private said(s: Said, row: number, n: number, floats: (n: number) => Float64Array, words: (n: number) => Uint32Array) {
    if (row === counterRow) {
      s.graph = { start: floats(n).slice(), least: floats(n).slice(), most: floats(n).slice(), last: floats(n).slice(), values: words(n).slice() };
      return;
    }
    const kept = new ArrayBuffer(29 * n);
    const r: Row = {
      start: new Float64Array(kept, 0, n),
      duration: new Float64Array(kept, 8 * n, n),
      busy: new Float32Array(kept, 16 * n, n),
      func: new Uint32Array(kept, 20 * n, n),
      calls: new Uint32Array(kept, 24 * n, n),
      columns: null,
      flags: new Uint8Array(kept, 28 * n, n),
    };
    r.start.set(floats(n));
    r.duration.set(floats(n));
    r.busy.set(floats(n));
    r.func.set(words(n));
    r.calls.set(words(n));
    r.flags!.set(words(n));
    if (row === instantRow) s.instants = r;
    else if (row >= stepRow) s.steps.set(row - stepRow, r);
    else {
      if (this.grid) r.columns = columnsOf(r, this.grid);
      s.spans.set(row - spanRow, r);
    }
  }

  end(): Lanes {
    if (this.blocks !== 0) throw new Error(`view: cut short at byte ${this.done + this.have}`);
    return this.lanes;
  }

  private grow(size: number) {
    if (size <= this.bytes.length) return;
    const wider = new Uint8Array(Math.max(size + (-size & 7), 2 * this.bytes.length));
    wider.set(this.bytes.subarray(0, this.have));
    this.bytes = wider;
  }

  private block(view: DataView, at: number) {
    const lane = view.getUint32(at, true);
    const row = view.getUint32(at + 4, true);
    const n = view.getUint32(at + 8, true);
    const gaps = view.getUint32(at + 12, true);
    at += 16;
    const { buffer } = view;
    const floats = (n: number) => new Float64Array(buffer, (at += 8 * n) - 8 * n, n);
    const words = (n: number) => new Uint32Array(buffer, (at += 8 * Math.ceil(n / 2)) - 8 * Math.ceil(n / 2), n);
    let l = this.lanes.get(lane);
    if (!l) this.lanes.set(lane, (l = { rows: new Map(), gaps: null, states: null }));
    if (row === stateRow) {
      l.states = { start: floats(n).slice(), duration: floats(n).slice(), shares: words(n).slice(), faults: words(n).slice() };
      return;
    }
    if (row >= spanRow) {
      this.said((l.said ??= { spans: new Map(), steps: new Map(), instants: null, graph: null }), row, n, floats, words);
      return;
    }
    const kept = new ArrayBuffer(28 * n);
    const r: Row = {
      start: new Float64Array(kept, 0, n),
      duration: new Float64Array(kept, 8 * n, n),
      busy: new Float32Array(kept, 16 * n, n),
      func: new Uint32Array(kept, 20 * n, n),
      calls: new Uint32Array(kept, 24 * n, n),
      columns: null,
    };
    r.start.set(floats(n));
    r.duration.set(floats(n));
    r.busy.set(floats(n));
    r.func.set(words(n));
    r.calls.set(words(n));
    words(n); // flags, which nothing shows
    if (this.grid) r.columns = columnsOf(r, this.grid);
    l.rows.set(row, r);
    if (gaps > 0) l.gaps = { start: floats(gaps).slice(), end: floats(gaps).slice(), events: floats(gaps).slice() };
  }
}

function sizeOf(view: DataView, at: number): number {
  const bars = view.getUint32(at + 8, true);
  if (view.getUint32(at + 4, true) === counterRow) return 16 + 32 * bars + 8 * Math.ceil(bars / 2);
  if (view.getUint32(at + 4, true) === stateRow) return 16 + 16 * bars + 2 * 8 * Math.ceil(bars / 2);
  return 16 + 24 * bars + 3 * 8 * Math.ceil(bars / 2) + 24 * view.getUint32(at + 12, true);
}

/** decodeView reads an answer that is there as a whole. */
export function decodeView(buffer: ArrayBuffer, grid: Grid | null = null): Lanes {
  const r = new Reader(grid);
  r.push(new Uint8Array(buffer));
  return r.end();
}

/** buffersOf are the memory of an answer, to be given from one thread to another. */
export function buffersOf(lanes: Lanes): ArrayBuffer[] {
  const all: ArrayBuffer[] = [];
  const add = (a: Float64Array | Uint32Array | null) => a && all.push(a.buffer as ArrayBuffer);
  for (const l of lanes.values()) {
    for (const r of l.rows.values()) {
      add(r.start);
      add(r.columns);
    }
    if (l.states) [l.states.start, l.states.duration, l.states.shares, l.states.faults].forEach(add);
    if (l.gaps) [l.gaps.start, l.gaps.end, l.gaps.events].forEach(add);
    if (l.said) {
      const { spans, steps, instants, graph: g } = l.said;
      for (const r of [...spans.values(), ...steps.values(), ...(instants ? [instants] : [])]) [r.start, r.columns].forEach(add);
      if (g) [g.start, g.least, g.most, g.last, g.values].forEach(add);
    }
  }
  return all;
}

/** bytesOf is how much memory an answer's bars take. */
export function bytesOf(lanes: Lanes): number {
  return buffersOf(lanes).reduce((sum, b) => sum + b.byteLength, 0);
}

/** firstEndingAfter is the index of the first bar of a row, or stretch of states, that ends after the instant. */
export function firstEndingAfter(row: { start: Float64Array; duration: Float64Array }, at: number): number {
  let lo = 0;
  let hi = row.start.length;
  while (lo < hi) {
    const mid = (lo + hi) >>> 1;
    if (row.start[mid] + row.duration[mid] > at) hi = mid;
    else lo = mid + 1;
  }
  return lo;
}
