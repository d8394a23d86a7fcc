// Bars are painted into memory, a line of pixels a row, and the picture is put on
// the canvas as a whole: some hundred thousand bars take a few milliseconds so,
// with or without a graphics card.

import type { Bytes } from "./color";
import { firstEndingAfter, type Row } from "./decode";
import type { Palette } from "./palette";
import type { Span } from "./viewport";

/** Label is a bar with room for text; pixels of the device. */
export interface Label {
  x0: number;
  x1: number;
  y: number;
  func: number;
  calls: number;
  match: boolean;
}

/** Piece is what one answer has to say of a row. */
export interface Piece {
  span: Span;
  row: Row;
}

/** Shares are merged bars' lower parts, as high as the share of time in calls. There are as many as pixels: no objects are made. */
class Shares {
  length = 0;
  x0 = new Int32Array(256);
  x1 = new Int32Array(256);
  color = new Uint32Array(256);
  share = new Float32Array(256);

  push(x0: number, x1: number, color: Bytes, share: number) {
    const i = this.length++;
    if (i === this.x0.length) this.grow();
    this.x0[i] = x0;
    this.x1[i] = x1;
    this.color[i] = color;
    this.share[i] = share;
  }

  private grow() {
    const twice = <A extends Int32Array | Uint32Array | Float32Array>(a: A): A => {
      const b = new (a.constructor as new (n: number) => A)(2 * a.length);
      b.set(a);
      return b;
    };
    [this.x0, this.x1, this.color, this.share] = [twice(this.x0), twice(this.x1), twice(this.color), twice(this.share)];
  }

  /** cut takes back what lies in [x0, x1). */
  cut(x0: number, x1: number) {
    const n = this.length;
    let kept = 0;
    const right: [number, number, Bytes, number][] = [];
    for (let i = 0; i < n; i++) {
      if (this.x0[i] < x1 && this.x1[i] > x0) {
        if (this.x1[i] > x1) right.push([x1, this.x1[i], this.color[i], this.share[i]]);
        if (this.x0[i] >= x0) continue;
        this.x1[i] = x0;
      }
      [this.x0[kept], this.x1[kept], this.color[kept], this.share[kept]] = [this.x0[i], this.x1[i], this.color[i], this.share[i]];
      kept++;
    }
    this.length = kept;
    for (const r of right) this.push(...r);
  }
}

export class Raster {
  width = 0;
  height = 0;
  pixels: Uint32Array = new Uint32Array(0);
  bars = 0; // painted since begin
  labels: Label[] = [];
  private line = new Uint32Array(0);
  private lane = new Uint32Array(0);
  private shares = new Shares();
  private labelX0 = 0;
  private labelX1 = 0;
  private labelFunc = -1;
  private labelCalls = 0;
  private from = 0;
  private scale = 1; // pixels a nanosecond

  /** begin prepares a picture in which the window fills the width. */
  begin(pixels: Uint32Array, width: number, window: Span) {
    this.pixels = pixels;
    this.height = Math.floor(pixels.length / width);
    if (this.width !== width) [this.line, this.lane] = [new Uint32Array(width), new Uint32Array(width)];
    this.width = width;
    this.from = window.from;
    this.scale = width / (window.to - window.from);
    this.bars = 0;
    this.labels = [];
  }

  private column(at: number): number {
    const x = (at - this.from) * this.scale;
    return x <= 0 ? 0 : x >= this.width ? this.width : Math.floor(x);
  }

  /** fill paints the lines y0 to y1-1 from the ground line. */
  fill(y0: number, y1: number, ground: Uint32Array) {
    for (let y = Math.max(0, y0); y < Math.min(this.height, y1); y++) this.pixels.set(ground, y * this.width);
  }

  /** ground makes a lane's ground line: alive from start to end, idle outside. It is good until the next lane's. */
  ground(life: Span, alive: Bytes, idle: Bytes): Uint32Array {
    return this.lane.fill(idle).fill(alive, this.column(life.from), this.column(life.to));
  }

  /** row paints one row into the lines y0 to y1-1; least is the width that a label needs. */
  row(y0: number, y1: number, ground: Uint32Array, pieces: Piece[], palette: Palette, least: number) {
    const top = Math.max(0, y0);
    const bottom = Math.min(this.height, y1);
    if (top >= bottom) return;
    this.line.set(ground);
    this.shares.length = 0;
    for (let i = 0; i < pieces.length; i++) {
      if (i > 0) this.erase(pieces[i].span, ground);
      this.piece(pieces[i], palette, y0, least);
    }
    for (let y = top; y < bottom; y++) this.pixels.set(this.line, y * this.width);
    const s = this.shares;
    for (let i = 0; i < s.length; i++) {
      const lines = Math.max(1, Math.round((y1 - y0) * s.share[i]));
      for (let y = Math.max(top, y1 - lines); y < bottom; y++) this.stroke(this.pixels, y * this.width, s.x0[i], s.x1[i], s.color[i]);
    }
  }

  private stroke(a: Uint32Array, offset: number, x0: number, x1: number, color: Bytes) {
    if (x1 - x0 > 12) a.fill(color, offset + x0, offset + x1);
    else for (let x = x0; x < x1; x++) a[offset + x] = color;
  }

  // What a coarser answer says is taken back where a finer one is there.
  private erase(span: Span, ground: Uint32Array) {
    const x0 = this.column(span.from);
    const x1 = this.column(span.to);
    this.line.set(ground.subarray(x0, x1), x0);
    this.shares.cut(x0, x1);
    this.labels = this.labels.filter((l) => l.x1 <= x0 || l.x0 >= x1);
  }

  // Everything that it takes for a bar is at hand: in a frame there may be some hundred thousand.
  private piece(p: Piece, palette: Palette, y: number, least: number) {
    const { start, duration, busy, func, calls } = p.row;
    const { line, from, scale, width, shares } = this;
    const first = Math.max(from, p.span.from);
    const end = Math.min(from + width / scale, p.span.to);
    let { one, tint, over } = palette;
    const n = start.length;
    const labelled = least < width;
    let painted = 0;
    for (let i = firstEndingAfter(p.row, first); i < n; i++) {
      const s = start[i];
      if (s >= end) break;
      const e = s + duration[i];
      const left = ((s < first ? first : s) - from) * scale;
      const right = ((e > end ? end : e) - from) * scale;
      const x0 = left <= 0 ? 0 : left >= width ? width : left | 0;
      let x1 = right <= 0 ? 0 : right >= width ? width : right | 0;
      if (x1 <= x0) x1 = x0 < width ? x0 + 1 : width;
      const f = func[i];
      let plain = f < one.length ? one[f] : 0;
      let ground = plain === 0 ? 0 : tint[f];
      let lower = plain === 0 ? 0 : over[f];
      if (plain === 0) {
        [plain, ground, lower] = palette.learn(f);
        ({ one, tint, over } = palette);
      }
      painted++;
      const merged = calls[i] > 1;
      if (merged && lower !== 0) shares.push(x0, x1, lower, busy[i] < duration[i] ? busy[i] / duration[i] : 1);
      const color = merged ? ground : plain;
      // Bars of a call that are wide enough leave a pixel free, so that neighbours of one colour can be told apart.
      const stop = !merged && x1 - x0 > 3 ? x1 - 1 : x1;
      if (stop - x0 > 24) line.fill(color, x0, stop);
      else for (let x = x0; x < stop; x++) line[x] = color;
      if (labelled) this.label(x0, x1, y, f, calls[i], least, palette);
      // Of a finer answer, as after zooming out, one bar a pixel is enough until the one that suits comes.
      if (x1 - x0 === 1 && i + 1 < n) {
        const at = from + x1 / scale;
        if (start[i + 1] + duration[i + 1] <= at) i = this.skip(p.row, i, at);
      }
    }
    if (labelled) this.endLabel(y, least, palette);
    this.bars += painted;
  }

  // The last bar from the i-th on that ends before the instant.
  private skip({ start, duration }: Row, i: number, at: number): number {
    let step = 1;
    let next = i + 1;
    while (next < start.length && start[next] + duration[next] <= at) {
      i = next;
      next += step;
      step *= 2;
    }
    while (step > 1) {
      step >>= 1;
      if (i + step < start.length && start[i + step] + duration[i + step] <= at) i += step;
    }
    return i;
  }

  // Merged and narrow bars that touch and are mostly of one function have one label, which grows here until one comes that does not belong to it.
  private label(x0: number, x1: number, y: number, func: number, calls: number, least: number, palette: Palette) {
    const width = this.labelX1 - this.labelX0;
    const touching = func === this.labelFunc && x0 - this.labelX1 <= 1 && x0 >= this.labelX0;
    if (touching && (calls > 1 || x1 - x0 < least) && (this.labelCalls > 1 || width < least)) {
      this.labelX1 = x1;
      this.labelCalls += calls;
      return;
    }
    if (width >= least) this.endLabel(y, least, palette);
    this.labelX0 = x0;
    this.labelX1 = x1;
    this.labelFunc = func;
    this.labelCalls = calls;
  }

  private endLabel(y: number, least: number, palette: Palette) {
    if (this.labelX1 - this.labelX0 >= least) {
      this.labels.push({ x0: this.labelX0, x1: this.labelX1, y, func: this.labelFunc, calls: this.labelCalls, match: palette.hit(this.labelFunc) });
    }
    this.labelFunc = -1;
    this.labelX0 = this.labelX1 = 0;
  }

  /** rule draws a line from side to side. */
  rule(y: number, color: Bytes) {
    if (y >= 0 && y < this.height) this.pixels.fill(color, y * this.width, (y + 1) * this.width);
  }

  /** hatch paints a stretch of time as lost, wide enough to be seen; what was painted there shows through. */
  hatch(y0: number, y1: number, span: Span, ground: Uint32Array, [paper, stripe]: [Bytes, Bytes]) {
    const x0 = this.column(span.from);
    const x1 = Math.min(this.width, Math.max(this.column(span.to), x0 + 6));
    for (let y = Math.max(0, y0); y < Math.min(this.height, y1); y++) {
      const line = y * this.width;
      for (let x = x0; x < x1; x++) {
        if (((x + y) & 7) < 2) this.pixels[line + x] = stripe;
        else if (this.pixels[line + x] === ground[x]) this.pixels[line + x] = paper;
      }
    }
  }
}
