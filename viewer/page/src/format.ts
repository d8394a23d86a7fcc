// How numbers are written. All times are nanoseconds; without a clock they are numbers of events.

let clock = true; // of what the page shows; said once, before anything is written

/** withoutClock makes times be written as what they are where nothing was timed: numbers of events. */
export function withoutClock() {
  clock = false;
}

let zero = 0; // the instant that times are counted from

/** countFrom makes instants be written as times since ns, as of a dump since its window's beginning. */
export function countFrom(ns: number) {
  zero = ns;
}

/** since is an instant as it is written. */
export function since(ns: number): number {
  return ns - zero;
}

const units: [number, string][] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
  [1, "ns"],
];

/** duration writes a time span with four significant digits: "413.4 µs". */
export function duration(ns: number): string {
  if (!Number.isFinite(ns)) return "–";
  if (ns < 0) return "−" + duration(-ns);
  if (!clock) return `${count(ns)} ev`;
  if (ns >= 60e9) return minutes(ns);
  for (const [size, unit] of units) {
    // What would round up to the next unit's 1 is written in that.
    if (ns >= size * 0.99995 || size === 1) return `${digits(ns / size)} ${unit}`;
  }
  return "0 ns";
}

function minutes(ns: number): string {
  const tenths = Math.round(ns / 1e8);
  const h = Math.floor(tenths / 36000);
  const m = Math.floor((tenths % 36000) / 600);
  const s = ((tenths % 600) / 10).toFixed(1);
  return h > 0 ? `${h} h ${m} min ${s} s` : `${m} min ${s} s`;
}

function digits(x: number): string {
  if (x === 0) return "0";
  const decimals = x >= 999.95 ? 0 : x >= 99.995 ? 1 : x >= 9.9995 ? 2 : 3;
  const s = x.toFixed(decimals);
  return decimals > 0 ? s.replace(/\.?0+$/, "") : s;
}

/** count writes a whole number with separators: "1,295,637". */
export function count(n: number): string {
  return Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, ",");
}

/** plural is a count with its noun: "1 call", "2 calls". */
export function plural(n: number, noun: string): string {
  return `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
}

/** percent writes a share of one. */
export function percent(share: number): string {
  if (!Number.isFinite(share)) return "–";
  const p = share * 100;
  return (p >= 99.95 ? "100" : p >= 10 ? p.toFixed(1) : p >= 0.005 || p === 0 ? p.toFixed(2) : "<0.01") + " %";
}

/** niceStep is the step from tick to tick, 1, 2 or 5 times a power of ten, so that ticks are at least minimum apart. */
export function niceStep(minimum: number): number {
  const power = Math.pow(10, Math.floor(Math.log10(Math.max(minimum, 1))));
  for (const m of [1, 2, 5]) if (m * power >= minimum) return m * power;
  return 10 * power;
}

/** instant writes a point in time, exact to step: "1.2345 s". */
export function instant(ns: number, step: number): string {
  if (!clock) return `#${count(ns)}`;
  const sign = ns < 0 ? "−" : "";
  ns = Math.abs(ns);
  const [size, unit] = units.find(([size]) => ns >= size) ?? units[units.length - 1];
  const decimals = Math.max(0, Math.min(9, Math.ceil(Math.log10(size / Math.max(step, 1)) - 1e-9)));
  return `${sign}${grouped((ns / size).toFixed(decimals))} ${unit}`;
}

// Decimals beyond the third are grouped by thin spaces, as long ones are hard to read.
function grouped(s: string): string {
  const [whole, fraction] = s.split(".");
  const w = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return fraction === undefined ? w : w + "." + fraction.replace(/(\d{3})(?=\d)/g, "$1\u2009");
}
