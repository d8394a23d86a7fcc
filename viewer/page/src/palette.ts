// The colours of functions in arrays, as painting a bar must not take longer than looking into them.

import type { Bytes, Shade } from "./color";

// Functions beyond are looked up one by one.
const most = 1 << 20;

/** looks are where the colours of a function stand in a palette: of a call, and behind it of merged bars. */
export function looks(func: number): number {
  return 2 * func + 2;
}

/** Palette knows how bars of each function look. */
export class Palette {
  upper: Uint32Array = new Uint32Array(1024); // by looks; 0: to be learned, or nothing at all
  lower: Uint32Array = new Uint32Array(1024); // as much of a bar as it is busy
  private unknowns: number[] = [];

  /** match are the functions that are looked for, null if all are shown; shades equal to unknown are learned anew when names have arrived. */
  constructor(
    private shade: (func: number) => Shade,
    readonly match: ReadonlySet<number> | null,
    private unknown: Shade | null = null,
  ) {}

  /** learn are the colours of a function: of a call, and of a merged bar's upper and lower part. */
  learn(func: number): [Bytes, Bytes, Bytes] {
    const s = this.shade(func);
    const c: [Bytes, Bytes, Bytes] = this.hit(func) ? [s.full, s.tint, s.full] : [s.dim, s.dim, s.dim];
    if (func >= most) return c;
    if (s === this.unknown) this.unknowns.push(func);
    const at = looks(func);
    if (at + 1 >= this.upper.length) this.grow(at + 2);
    this.upper[at] = this.lower[at] = c[0];
    [this.upper[at + 1], this.lower[at + 1]] = [c[1], c[2]];
    return c;
  }

  namesArrived() {
    for (const f of this.unknowns) this.upper.fill(0, looks(f), looks(f) + 2);
    this.unknowns = [];
  }

  hit(func: number): boolean {
    return this.match === null || this.match.has(func);
  }

  private grow(least: number) {
    const size = 2 ** Math.ceil(Math.log2(least));
    const wider = (a: Uint32Array) => {
      const b = new Uint32Array(size);
      b.set(a);
      return b;
    };
    [this.upper, this.lower] = [wider(this.upper), wider(this.lower)];
  }
}
