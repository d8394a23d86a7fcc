// The answer of api/view: little-endian, everything on 8 bytes; see viewer's doc.go.

/** Row holds the bars of one row in order of time; the arrays are views of the answer. */
export interface Row {
  start: Float64Array; // ns
  duration: Float64Array; // ns
  busy: Float64Array; // ns in calls, of a merged bar less than its duration
  func: Uint32Array; // of a merged bar the one with most time; 0: unknown
  calls: Uint32Array; // 1: that very call
  flags: Uint32Array;
}

export interface Gaps {
  start: Float64Array; // ns
  end: Float64Array; // ns
  events: Float64Array;
}

export interface LaneBars {
  rows: Map<number, Row>;
  gaps: Gaps | null;
}

const magic = 0x57564c43;

/** decodeView reads an answer; it throws if the bytes do not make sense. */
export function decodeView(buffer: ArrayBuffer): Map<number, LaneBars> {
  const view = new DataView(buffer);
  if (buffer.byteLength < 8 || view.getUint32(0, true) !== magic) throw new Error("view: not an answer of this version");
  const blocks = view.getUint32(4, true);
  const lanes = new Map<number, LaneBars>();
  let at = 8;
  const need = (n: number) => {
    if (at + n > buffer.byteLength) throw new Error(`view: cut short at byte ${at} of ${buffer.byteLength}`);
  };
  const floats = (n: number) => {
    need(8 * n);
    const a = new Float64Array(buffer, at, n);
    at += 8 * n;
    return a;
  };
  const words = (n: number) => {
    const size = 8 * Math.ceil(n / 2);
    need(size);
    const a = new Uint32Array(buffer, at, n);
    at += size;
    return a;
  };
  for (let i = 0; i < blocks; i++) {
    need(16);
    const lane = view.getUint32(at, true);
    const row = view.getUint32(at + 4, true);
    const bars = view.getUint32(at + 8, true);
    const gaps = view.getUint32(at + 12, true);
    at += 16;
    let l = lanes.get(lane);
    if (!l) lanes.set(lane, (l = { rows: new Map(), gaps: null }));
    const [start, duration, busy] = [floats(bars), floats(bars), floats(bars)];
    l.rows.set(row, { start, duration, busy, func: words(bars), calls: words(bars), flags: words(bars) });
    if (gaps > 0) l.gaps = { start: floats(gaps), end: floats(gaps), events: floats(gaps) };
  }
  return lanes;
}

/** firstEndingAfter is the index of the first bar of a row that ends after the instant. */
export function firstEndingAfter(row: Row, at: number): number {
  let lo = 0;
  let hi = row.start.length;
  while (lo < hi) {
    const mid = (lo + hi) >>> 1;
    if (row.start[mid] + row.duration[mid] > at) hi = mid;
    else lo = mid + 1;
  }
  return lo;
}
