// Bars are painted into memory, a line of pixels a row, and the picture is put on
// the canvas as a whole: some hundred thousand bars take a few milliseconds so,
// with or without a graphics card.

import type { Bytes } from "./color";
import { busyOf, levels, looksMask, many, type Grid } from "./columns";
import { firstEndingAfter, type Row } from "./decode";
import { looks, type Palette } from "./palette";
import { unknownIn } from "./unknown";
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
  grid: Grid;
  row: Row;
}

const fractionBits = 15;
const fraction = 1 << fractionBits;

function linesOf(height: number, share: number): number {
  return Math.min(255, Math.max(1, Math.round(height * share)));
}

export class Raster {
  width = 0;
  height = 0;
  pixels: Uint32Array = new Uint32Array(0);
  bars = 0; // painted since begin
  labels: Label[] = [];
  // A row's pixels: merged bars' lower parts are as high as the share of time in calls.
  private line = new Uint32Array(0);
  private lower = new Uint32Array(0);
  private lift = new Uint8Array(0); // how many lines of the row the lower part has
  private lifts = { least: Infinity, most: 0 };
  private lines = { height: -1, of: new Uint8Array(levels) }; // by how busy a column is
  private shares = { height: -1, of: new Uint8Array(0) }; // by shares of 255
  private lane = new Uint32Array(0);
  private hidden: { of: Span[]; parts: Span[][] } = { of: [], parts: [] };
  private labelX0 = 0;
  private labelX1 = 0;
  private labelFunc = -1;
  private labelCalls = 0;
  private from = 0;
  private scale = 1; // pixels a nanosecond

  /** begin prepares a picture in which the visible range fills the width. */
  begin(pixels: Uint32Array, width: number, visible: Span) {
    this.pixels = pixels;
    this.height = Math.floor(pixels.length / width);
    if (this.width !== width) {
      [this.line, this.lower, this.lane] = [new Uint32Array(width), new Uint32Array(width), new Uint32Array(width)];
      this.lift = new Uint8Array(width);
    }
    this.width = width;
    this.from = visible.from;
    this.scale = width / (visible.to - visible.from);
    this.bars = 0;
    this.labels = [];
  }

  /** start and end are the visible range. */
  get start(): number {
    return this.from;
  }

  get end(): number {
    return this.from + this.width / this.scale;
  }

  /** column is the pixel that an instant is in, at most the width. */
  column(at: number): number {
    const x = (at - this.from) * this.scale;
    return x <= 0 ? 0 : x >= this.width ? this.width : Math.floor(x);
  }

  /** linesOfShares is how many of so many lines stand for each share of 255: some for the least. */
  linesOfShares(height: number): Uint8Array {
    if (this.shares.height !== height) this.shares = { height, of: Uint8Array.from({ length: 256 }, (_, share) => (share === 0 ? 0 : linesOf(height, share / 255))) };
    return this.shares.of;
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
    const height = y1 - y0;
    if (this.lines.height !== height) this.lines = { height, of: Uint8Array.from({ length: levels }, (_, busy) => (busy === 0 ? 0 : linesOf(height, busy / (levels - 1)))) };
    this.lifts = { least: Infinity, most: 0 };
    this.line.set(ground);
    this.lower.set(ground);
    const seen = this.seen(pieces);
    for (let i = 0; i < pieces.length; i++) {
      for (const span of seen[i]) this.piece(pieces[i], span, ground, palette, y0, height, least);
    }
    for (let y = top; y < bottom; y++) {
      const n = y1 - y; // the n-th line from below
      if (n > this.lifts.most) this.pixels.set(this.line, y * this.width);
      else if (n <= this.lifts.least) this.pixels.set(this.lower, y * this.width);
      else this.mix(n, y * this.width);
    }
  }

  // Without a condition, which a processor can't foresee.
  private mix(n: number, offset: number) {
    const { pixels, line, lower, lift, width } = this;
    for (let x = 0; x < width; x++) {
      const lifted = (n - 1 - lift[x]) >> 31; // all bits or none
      pixels[offset + x] = line[x] ^ ((line[x] ^ lower[x]) & lifted);
    }
  }

  // What each piece is seen of: finer ones hide those before them. It is the same for most rows of a frame.
  private seen(pieces: Piece[]): Span[][] {
    const { of, parts } = this.hidden;
    if (of.length === pieces.length && of.every((s, i) => s === pieces[i].span)) return parts;
    const spans = pieces.map((p) => p.span);
    this.hidden = { of: spans, parts: spans.map((s, i) => unknownIn(s, spans.slice(i + 1))) };
    return this.hidden.parts;
  }

  private lifted(lines: number) {
    const { lifts } = this;
    if (lines < lifts.least) lifts.least = lines;
    if (lines > lifts.most) lifts.most = lines;
  }

  private piece(p: Piece, span: Span, ground: Uint32Array, palette: Palette, y: number, height: number, least: number) {
    const from = Math.max(this.from, span.from);
    const end = Math.min(this.from + this.width / this.scale, span.to);
    if (end <= from) return;
    const first = firstEndingAfter(p.row, from);
    // Labels tell how many calls they are, which only the bars do.
    if (p.row.columns === null || least < this.width) this.barByBar(p.row, first, from, end, palette, y, height, least);
    else {
      const count = firstEndingAfter(p.row, end) - first;
      if (count <= many) this.barByBar(p.row, first, from, end, palette, y, height, least);
      else this.columns(p.row.columns, p.grid, this.column(from), this.column(end), ground, palette);
      this.bars += count > many ? count : 0;
    }
  }

  // Each pixel shows the first that is there of its columns.
  private columns(columns: Uint32Array, grid: Grid, x0: number, x1: number, ground: Uint32Array, palette: Palette) {
    const { line, lower, lift } = this;
    const lines = this.lines.of;
    const scale = grid.width / (grid.to - grid.from);
    const step = scale / this.scale;
    const last = columns.length - 1;
    let { upper: over, lower: under } = palette;
    this.lifts = { least: 1, most: lines[levels - 1] };
    // Columns are counted in parts of fraction: there are at most 2^14 of them.
    const by = Math.min(step, columns.length) * fraction | 0;
    let place = ((this.from - grid.from) * scale + x0 * step) * fraction + 1 | 0;
    let k = Math.min(last, Math.max(0, place >> fractionBits));
    for (let x = x0; x < x1; x++) {
      place += by;
      let end = place >> fractionBits;
      if (end > last) end = last;
      let c = columns[k];
      while (c === 0 && ++k < end) c = columns[k];
      k = end;
      const at = c & looksMask;
      let color = at < over.length ? over[at] : 0;
      if (color === 0) {
        if (c === 0) {
          line[x] = lower[x] = ground[x];
          continue;
        }
        const [one, merged, low] = palette.learn((at >> 1) - 1);
        ({ upper: over, lower: under } = palette);
        color = at & 1 ? merged : one;
        lower[x] = at & 1 ? low : one;
      } else lower[x] = under[at];
      line[x] = color;
      lift[x] = lines[busyOf(c)];
    }
  }

  // Everything that it takes for a bar is at hand: in a frame there may be some hundred thousand.
  private barByBar(row: Row, first: number, begin: number, end: number, palette: Palette, y: number, height: number, least: number) {
    const { start, duration, busy, func, calls } = row;
    const { line, lower, lift, from, scale, width } = this;
    let { upper: over, lower: under } = palette;
    const n = start.length;
    const labelled = least < width;
    let painted = 0;
    for (let i = first; i < n; i++) {
      const s = start[i];
      if (s >= end) break;
      const e = s + duration[i];
      const left = ((s < begin ? begin : s) - from) * scale;
      const right = ((e > end ? end : e) - from) * scale;
      const x0 = left <= 0 ? 0 : left >= width ? width : left | 0;
      let x1 = right <= 0 ? 0 : right >= width ? width : right | 0;
      if (x1 <= x0) x1 = x0 < width ? x0 + 1 : width;
      const f = func[i];
      const merged = calls[i] > 1;
      const at = merged ? looks(f) + 1 : looks(f);
      let color = at < over.length ? over[at] : 0;
      let low = color === 0 ? 0 : under[at];
      if (color === 0) {
        const [one, most, least] = palette.learn(f);
        ({ upper: over, lower: under } = palette);
        [color, low] = merged ? [most, least] : [one, one];
      }
      painted++;
      let up = 0;
      if (merged) {
        up = linesOf(height, busy[i] < duration[i] ? busy[i] / duration[i] : 1);
        this.lifted(up);
      }
      // Bars of a call that are wide enough leave a pixel free, so that neighbours of one colour can be told apart.
      const stop = !merged && x1 - x0 > 3 && e <= end ? x1 - 1 : x1;
      if (stop - x0 > 24) {
        line.fill(color, x0, stop);
        lower.fill(low, x0, stop);
        lift.fill(up, x0, stop);
      } else {
        for (let x = x0; x < stop; x++) {
          line[x] = color;
          lower[x] = low;
          lift[x] = up;
        }
      }
      if (labelled) this.label(x0, x1, y, f, calls[i], least, palette);
      // Of a finer answer, as after zooming out, one bar a pixel is enough until the one that suits comes.
      if (x1 - x0 === 1 && i + 1 < n) {
        const at = from + x1 / scale;
        if (start[i + 1] + duration[i + 1] <= at) i = this.skip(row, i, at);
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

  /** unknown paints a stretch that is still to be told of: dots, as hatching is for what is lost. */
  unknown(y0: number, y1: number, span: Span, color: Bytes) {
    const x0 = this.column(span.from);
    const x1 = this.column(span.to);
    for (let y = Math.max(0, y0); y < Math.min(this.height, y1); y++) {
      if (y % 4 > 1) continue;
      for (let x = x0 + (-x0 & 7) + (y & 4); x < x1; x += 8) this.pixels.fill(color, y * this.width + x, y * this.width + Math.min(x + 2, x1));
    }
  }

  /** stripes paints slanted lines over what is painted in a part of the picture, every so many pixels; the ground stays as it is. */
  stripes(y0: number, y1: number, x0: number, x1: number, ground: Uint32Array, color: Bytes, share: number, slant: 1 | -1, every: number, thick: number) {
    const { pixels, width } = this;
    const of = Math.round(share * 256);
    const [r, g, b] = [(color & 255) * of, ((color >> 8) & 255) * of, ((color >> 16) & 255) * of];
    const rest = 256 - of;
    // What is painted is of few colours: that of a pixel is mostly that of the one before.
    let before = 0;
    let mixed = 0;
    for (let y = y0; y < y1; y++) {
      const line = y * width;
      // The first stripe that reaches into the stretch; it is on a grid of the screen, so that neighbours go on.
      const phase = (((slant * y) % every) + every) % every;
      for (let at = x0 - ((((x0 + phase) % every) + every) % every); at < x1; at += every) {
        const end = at + thick < x1 ? at + thick : x1;
        for (let x = at < x0 ? x0 : at; x < end; x++) {
          const p = pixels[line + x];
          if (p === ground[x]) continue;
          if (p !== before) {
            before = p;
            mixed = (0xff000000 | ((((p >> 16) & 255) * rest + b) >> 8) << 16 | ((((p >> 8) & 255) * rest + g) >> 8) << 8 | (((p & 255) * rest + r) >> 8)) >>> 0;
          }
          pixels[line + x] = mixed;
        }
      }
    }
  }

  /** unheard paints stripes over the ground in the marked columns of lines y0 to y1-1; what is painted stays as it is. */
  unheard(y0: number, y1: number, columns: Uint8Array, ground: Uint32Array, color: Bytes) {
    const { pixels, width } = this;
    for (let y = Math.max(0, y0); y < Math.min(this.height, y1); y++) {
      const line = y * width;
      for (let at = -(y & 7); at < width; at += 8) {
        for (let x = Math.max(0, at); x < Math.min(at + 2, width); x++) if (columns[x] === 1 && pixels[line + x] === ground[x]) pixels[line + x] = color;
      }
    }
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
