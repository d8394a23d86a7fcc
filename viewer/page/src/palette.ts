// The colours of functions in arrays, as painting a bar must not take longer than looking into them.

import type { Bytes, Shade } from "./color";

// Functions beyond are looked up one by one.
const most = 1 << 20;

/** Palette knows how bars of each function look. */
export class Palette {
  one: Uint32Array = new Uint32Array(1024); // a call; 0: to be learned
  tint: Uint32Array = new Uint32Array(1024); // the ground of a merged bar
  over: Uint32Array = new Uint32Array(1024); // its lower part; 0: it has none

  private unknowns: number[] = [];

  /** match are the functions that are looked for, null if all are shown; shades equal to unknown are learned anew when names have arrived. */
  constructor(
    private shade: (func: number) => Shade,
    readonly match: ReadonlySet<number> | null,
    private unknown: Shade | null = null,
  ) {}

  /** learn are the colours of a function: of a call, of a merged bar's ground and of its lower part. */
  learn(func: number): [Bytes, Bytes, Bytes] {
    const s = this.shade(func);
    const c: [Bytes, Bytes, Bytes] = this.hit(func) ? [s.full, s.tint, s.full] : [s.dim, s.dim, 0];
    if (func >= most) return c;
    if (s === this.unknown) this.unknowns.push(func);
    if (func >= this.one.length) this.grow(func);
    [this.one[func], this.tint[func], this.over[func]] = c;
    return c;
  }

  namesArrived() {
    for (const f of this.unknowns) this.one[f] = 0;
    this.unknowns = [];
  }

  hit(func: number): boolean {
    return this.match === null || this.match.has(func);
  }

  private grow(func: number) {
    const size = 2 ** Math.ceil(Math.log2(func + 1));
    const wider = (a: Uint32Array) => {
      const b = new Uint32Array(size);
      b.set(a);
      return b;
    };
    [this.one, this.tint, this.over] = [wider(this.one), wider(this.tint), wider(this.over)];
  }
}
