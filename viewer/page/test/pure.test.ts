// The parts of the page that need no browser.
import assert from "node:assert/strict";
import { test } from "node:test";

import { arrowsOf } from "../src/arrows";
import { oklch, scheme, shade, css } from "../src/color";
import { columnsOf, type Grid } from "../src/columns";
import { decodeView, firstEndingAfter, Reader, type Row } from "../src/decode";
import { describe, marks, missingIn, triggerOf } from "../src/dump";
import { grow, levels } from "../src/forest";
import { count, countFrom, duration, instant, niceStep, percent, since } from "../src/format";
import { matcher } from "../src/functions";
import { Layout, sorted } from "../src/layout";
import { brief, cut, shown, showInvisible } from "../src/names";
import { callsOf, offHere } from "../src/off";
import { columnsOf as offColumns, runAt } from "../src/offsource";
import { Palette } from "../src/palette";
import { Raster } from "../src/raster";
import type { Viewed } from "../src/request";
import { Source } from "../src/source";
import { splitText } from "../src/split";
import { paintStates, paintWaits, seenStates, sharesAt, sharesLines } from "../src/states";
import type { Call, Dump, Lane, Trigger } from "../src/types";
import { format, initial, parse } from "../src/urlstate";
import { approach, clamp, pan, zoom } from "../src/viewport";

test("times are written with four digits in a unit that suits", () => {
  const cases: [number, string][] = [
    [0, "0 ns"],
    [7, "7 ns"],
    [999, "999 ns"],
    [1000, "1 µs"],
    [413_370, "413.4 µs"],
    [999_960, "1 ms"],
    [1_204_000, "1.204 ms"],
    [59_999_000_000, "60 s"],
    [63_000_000_000, "1 min 3.0 s"],
    [3_723_400_000_000, "1 h 2 min 3.4 s"],
    [-1500, "−1.5 µs"],
    [NaN, "–"],
  ];
  for (const [ns, want] of cases) assert.equal(duration(ns), want);
  assert.equal(count(1_295_637), "1,295,637");
  assert.equal(percent(0.12345), "12.3 %");
  assert.equal(percent(0.00001), "<0.01 %");
});

test("instants are exact to the ruler's step", () => {
  assert.equal(instant(1_500_000_000, 100_000_000), "1.5 s");
  assert.equal(instant(1_234_567_891, 1), "1.234\u2009567\u2009891 s");
  assert.deepEqual([0.3, 1.1, 21, 51, 99].map(niceStep), [1, 2, 50, 100, 100]);
});

test("instants count from where they are told to", () => {
  countFrom(3_600_000_000_000);
  assert.equal(instant(since(3_600_500_000_000), 100_000_000), "500 ms");
  assert.equal(duration(since(3_599_000_000_000)), "−1 s");
  countFrom(0);
});

test("what a dump was made for is told in words, and marked where it is", () => {
  const slow: Trigger = { kind: "call", condition: "call > 20ms", name: "call", tid: 8, thread: "main", start_ns: 500, end_ns: 43_000_500, duration_ns: 43_000_000, lane: 0, row: 1 };
  const open: Trigger = { ...slow, condition: "loop > 1s\u001b", open: true, row: null };
  const end: Trigger = { ...slow, kind: "end", condition: "", detail: "signal SIGSEGV", start_ns: 0, end_ns: 0, duration_ns: 0, lane: null, row: null };
  assert.equal(describe(slow), "call > 20ms, took 43 ms");
  assert.equal(describe(end), "end of the process, signal SIGSEGV");
  assert.ok(describe(open).endsWith(", not returned after 43 ms") && !describe(open).includes("\u001b"));
  const d: Dump = { from_ns: 100, to_ns: 9e9, triggers: [slow, open, end], missing: [{ lane: null, from_ns: 100, to_ns: 200 }, { lane: 3, from_ns: 300, to_ns: 400 }] };
  assert.deepEqual(marks(d, 1).map((m) => [m.from, m.to, m.row, m.open, m.current]), [[500, 43_000_500, 1, false, false], [500, 43_000_500, null, true, true]]);
  assert.equal(triggerOf(d, { lane: 0, row: 1, start_ns: 500 } as Call), slow);
  assert.equal(triggerOf(d, { lane: 0, row: 1, start_ns: 501 } as Call), null);
  assert.ok(missingIn(d, 0, { from: 150, to: 160 }) && missingIn(d, 3, { from: 0, to: 350 }));
  assert.ok(!missingIn(d, 0, { from: 300, to: 400 }) && !missingIn(null, 0, { from: 150, to: 160 }));
  assert.deepEqual(marks(null, 0), []);
});

test("a URL's hash and the state are each other's inverse", () => {
  const s = initial();
  assert.equal(format(s), "");
  assert.deepEqual(parse(""), s);
  Object.assign(s, {
    tab: "flame", reel: 1, visible: { from: 1, to: 2 ** 52 }, range: { from: 0, to: 17 }, selected: { lane: 3, row: 4, at: 5 },
    find: "a&b=c#%\u202e*", scroll: 7.5, height: 12, collapsed: [1, 2], sort: "name", colors: "image", scope: "range", lane: 0,
    order: "time", filter: "?", follow: true,
  });
  assert.deepEqual(parse("#" + format(s)), s);
  s.scope = "visible";
  assert.deepEqual(parse("#" + format(s)), s);
  assert.equal(parse("#of=window").scope, "visible"); // as links had it
});

test("a hash of nonsense leaves what is usual", () => {
  for (const h of ["#", "#t=9-3", "#t=-1-5", "#t=1e99-2", "#sel=1.2", "#h=1000", "#tab=__proto__", "#q=%E0%A4%A", "#=&&==", "#of=x&lane=1.5&reel=7"]) {
    assert.deepEqual(parse(h), initial(), h);
  }
});

test("what can't be seen in names is made visible", () => {
  assert.equal(showInvisible("a\u202eb\u0000\u007f\u2066"), "a‹202E›b‹00›‹7F›‹2066›");
  assert.equal(showInvisible("\ud800x"), "‹D800›x");
  assert.equal(showInvisible("\u{e0041}"), "‹E0041›");
  assert.equal(showInvisible("été 名前 🎞"), "été 名前 🎞");
  assert.equal(shown(""), "(no name)");
  assert.ok(shown("x".repeat(1e6)).length <= 240);
  assert.equal(cut("abcdefghij", 7), "abcd…ij");
  for (let n = 2; n < 12; n++) assert.ok(!/[\ud800-\udbff](?![\udc00-\udfff])/.test(cut("🎞🎞🎞🎞🎞🎞", n)), `cut at ${n} splits a pair`);
});

test("bars say the name without parameters and template arguments", () => {
  assert.equal(brief("std::map<int, std::string>::find(int const&)"), "std::map<…>::find");
  assert.equal(brief("operator<(A, B)"), "operator<");
  assert.equal(brief("(anonymous namespace)::f(int)"), "(anonymous namespace)::f");
  assert.equal(brief("a<b"), "a<b");
});

test("every colour of a bar bears its text", () => {
  const light = (c: number[]) => {
    const [r, g, b] = c.map((v) => ((v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const parse = (c: string) => (c.startsWith("#") ? [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16)) : c.match(/\d+/g)!.map(Number));
  for (const s of [scheme(false), scheme(true)]) {
    for (let i = 0; i < 3000; i++) {
      const c = shade("f" + i, s);
      for (const [ground, text] of [[c.full, s.text], [c.tint, s.text], [c.dim, s.faint]] as [number, string][]) {
        const [x, y] = [light(parse(css(ground))), light(parse(text))];
        assert.ok((Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05) >= 4.5, `${css(ground)} under ${text}`);
      }
    }
  }
  assert.deepEqual(oklch(1, 0, 0), [255, 255, 255]);
  assert.deepEqual(shade("main", scheme(true)), shade("main", scheme(true)));
});

test("zooming leaves what is pointed at where it is", () => {
  const bounds = { from: 0, to: 1e9 };
  let w = { from: 4e8, to: 6e8 };
  for (let i = 0; i < 40; i++) {
    const at = w.from + (w.to - w.from) * 0.3;
    w = zoom(w, at, 0.8, bounds);
    assert.ok(Math.abs((at - w.from) / (w.to - w.from) - 0.3) < 1e-6);
  }
  assert.deepEqual(zoom(w, w.from, 1e12, bounds), bounds);
  assert.deepEqual(pan({ from: 0, to: 10 }, -5, bounds).from, 0);
  assert.equal(clamp({ from: -50, to: 2e9 }, bounds).to, 1e9);
  let now = { from: 0, to: 1e9 };
  const target = { from: 1000, to: 2000 };
  for (let i = 0; i < 100 && now !== target; i++) now = approach(now, target, 16);
  assert.deepEqual(now, target);
});

/** answer makes what api/view sends: blocks of [lane, row, bars as [start, duration, busy, func, calls], gaps]. */
function answer(blocks: [number, number, number[][], number[][]][]): ArrayBuffer {
  const out = new DataView(new ArrayBuffer(1 << 17));
  let at = 0;
  const u32 = (v: number) => (out.setUint32(at, v, true), (at += 4));
  const f64 = (v: number) => (out.setFloat64(at, v, true), (at += 8));
  const pad = () => (at = 8 * Math.ceil(at / 8));
  u32(0x57564c43);
  u32(blocks.length);
  for (const [lane, row, bars, gaps] of blocks) {
    for (const v of [lane, row, bars.length, gaps.length]) u32(v);
    for (const i of [0, 1, 2]) bars.forEach((b) => f64(b[i]));
    for (const i of [3, 4, 5]) {
      bars.forEach((b) => u32(b[i] ?? 0));
      pad();
    }
    for (const i of [0, 1, 2]) gaps.forEach((g) => f64(g[i]));
  }
  return out.buffer.slice(0, at);
}

test("answers are read as they are written, and short ones refused", () => {
  const b = answer([
    [7, 0, [[0, 10, 10, 1, 1], [20, 30, 5, 2, 9], [60, 1, 1, 1, 1]], [[11, 19, 500]]],
    [7, 1, [[1, 2, 2, 3, 1]], []],
  ]);
  const lane = decodeView(b).get(7)!;
  assert.deepEqual([...lane.rows.get(0)!.start], [0, 20, 60]);
  assert.deepEqual([...lane.rows.get(0)!.calls], [1, 9, 1]);
  assert.deepEqual([...lane.rows.get(1)!.func], [3]);
  assert.equal(lane.gaps!.events[0], 500);
  assert.deepEqual([0, 9, 10, 49, 50, 61].map((t) => firstEndingAfter(lane.rows.get(0)!, t)), [0, 0, 1, 1, 2, 3]);
  for (let n = 0; n < b.byteLength; n++) assert.throws(() => decodeView(b.slice(0, n)));
  for (const size of [1, 7, 24, 100]) {
    const r = new Reader(null);
    for (let at = 0; at < b.byteLength; at += size) r.push(new Uint8Array(b.slice(at, at + size)));
    assert.deepEqual(r.end().get(7), lane);
  }
  const hostile = new Uint32Array(b.slice(0));
  hostile[4] = 0xffffffff; // bars
  assert.throws(() => decodeView(hostile.buffer), /a block of/);
});

test("merged bars are filled as far as they are busy, single ones whole, and others dimmed", () => {
  const row = decodeView(answer([[0, 0, [[0, 10, 10, 1, 1], [10, 10, 5, 1, 4]], []]])).get(0)!.rows.get(0)!;
  const shades = { full: 1, tint: 2, dim: 3 };
  const paint = (match: Set<number> | null) => {
    const r = new Raster();
    r.begin(new Uint32Array(20 * 10), 20, { from: 0, to: 20 });
    r.row(0, 10, new Uint32Array(20), [{ span: { from: 0, to: 20 }, grid: { from: 0, to: 20, width: 20 }, row }], new Palette(() => shades, match), 5);
    return r;
  };
  const r = paint(null);
  const column = (x: number) => Array.from({ length: 10 }, (_, y) => r.pixels[y * 20 + x]).join("");
  assert.equal(column(3), "1111111111");
  assert.equal(column(9), "0000000000"); // free, to tell neighbours apart
  assert.equal(column(12), "2222211111");
  assert.deepEqual(r.labels.map((l) => [l.x0, l.x1, l.calls]), [[0, 10, 1], [10, 20, 4]]);
  assert.equal(paint(new Set([9])).pixels[3], 3);
});

test("a finer answer hides what a coarser one says of its stretch", () => {
  const rows = decodeView(answer([[0, 0, [[0, 100, 50, 1, 70]], []], [0, 1, [[40, 10, 10, 2, 1]], []]])).get(0)!.rows;
  const r = new Raster();
  r.begin(new Uint32Array(100), 100, { from: 0, to: 100 });
  const grid = { from: 0, to: 100, width: 100 };
  const pieces = [{ span: { from: 0, to: 100 }, grid, row: rows.get(0)! }, { span: { from: 30, to: 60 }, grid, row: rows.get(1)! }];
  r.row(0, 1, new Uint32Array(100), pieces, new Palette((f) => ({ full: f, tint: 8, dim: 9 }), null), 5);
  assert.deepEqual([r.pixels[10], r.pixels[35], r.pixels[45], r.pixels[55], r.pixels[80]], [1, 0, 2, 0, 1]);
});

// A row of calls and merged ones, a to b nanoseconds long each, with a free stretch here and there.
function busyRow(n: number, a: number, b: number): Row {
  const bars: number[][] = [];
  for (let i = 0, at = 0; i < n; i++) {
    const long = a + ((i * 7919) % (b - a + 1));
    const calls = i % 3 === 0 ? 1 : 1 + (i % 9);
    bars.push([at, long, calls > 1 ? (long * (i % 5)) / 4 : long, 1 + (i % 17), calls]);
    at += long + (i % 11 === 0 ? 5 * long : 0);
  }
  return decodeView(answer([[0, 0, bars, []]])).get(0)!.rows.get(0)!;
}

test("rows of many bars look the same when they are painted from columns", () => {
  const shades = (f: number) => ({ full: f, tint: 100 + f, dim: 99 });
  const row = busyRow(400, 2, 9);
  const to = row.start[399] + row.duration[399];
  const paint = (r: Row, visible: { from: number; to: number }, width: number, grid: Grid) => {
    const raster = new Raster();
    raster.begin(new Uint32Array(width * 8), width, visible);
    raster.row(0, 8, new Uint32Array(width), [{ span: { from: 0, to }, grid, row: r }], new Palette(shades, null), Infinity);
    return raster;
  };
  const all = { from: 0, to };
  const grid = { ...all, width: to };
  const columns = columnsOf(row, grid)!;
  const [byBars, byColumns] = [paint(row, all, to, grid), paint({ ...row, columns }, all, to, grid)];
  assert.deepEqual(byColumns.pixels, byBars.pixels);
  assert.equal(byColumns.bars, byBars.bars);
  // At any other scale nothing is lost, and nothing is made up.
  for (const width of [to >> 1, (to * 2) / 3, to * 3, 97].map(Math.floor)) {
    const [a, b] = [paint(row, all, width, grid), paint({ ...row, columns }, all, width, grid)].map((r) => r.pixels.subarray(0, width));
    const near = (pixels: Uint32Array, x: number, by: number) => pixels.subarray(Math.max(0, x - by), x + by + 1).some((v) => v !== 0);
    const reach = Math.ceil(width / to); // that which is left free beside a call is a pixel or a column
    for (let x = 0; x < width; x++) {
      if (a[x] !== 0) assert.ok(near(b, x, reach), `pixel ${x} of ${width} is empty`);
      if (b[x] !== 0) assert.ok(near(a, x, reach + 1), `pixel ${x} of ${width} is not`);
    }
  }
  assert.equal(columnsOf(busyRow(300, 2, 9), grid), null);
});

function lane(id: number, rows: number, calls = 1): Lane {
  return { id, tid: 100 + id, pid: 1, goroutine: 0, name: `t${id}`, kind: "thread", calls, rows, start_ns: 0, end_ns: 9, dropped: 0 };
}

test("only rows on the screen are asked for", () => {
  const lanes = Array.from({ length: 10_000 }, (_, i) => lane(i, 40));
  const l = new Layout(lanes, 10, new Set([1]));
  assert.deepEqual(l.stretches(0, 100), [{ lane: 0, first: 0, count: 10 }]);
  const s = l.stretches(l.slots[500].top, l.slots[500].top + 800);
  assert.deepEqual(s.map((r) => r.lane), [500, 501]);
  assert.equal(l.slots[1].rows, 1);
  assert.deepEqual(sorted([lane(1, 1, 5), lane(2, 1, 0), lane(3, 1, 9)], "activity").map((x) => x.id), [3, 1, 2]);
});

test("one request is on its way at a time, and the last wish is met", async () => {
  const asked: string[] = [];
  const answers: ((b: Viewed) => void)[] = [];
  const s = new Source(
    (params, _, signal) =>
      new Promise((done, failed) => {
        asked.push(params);
        answers.push(done);
        signal.addEventListener("abort", () => failed(new Error("aborted")));
      }),
    () => {},
  );
  const rows = [{ lane: 0, first: 0, count: 5 }];
  const bounds = { from: 0, to: 1e6 };
  s.want({ from: 0, to: 1000 }, 1, rows, rows, bounds);
  s.want({ from: 100, to: 1100 }, 1, rows, rows, bounds); // covered by the margin
  s.want({ from: 900, to: 1900 }, 1, rows, rows, bounds); // near: waits
  assert.deepEqual(asked, ["from=0&to=1500&width=1500&lanes=0:0:5&quick=1"]);
  answers[0]({ lanes: new Map(), coarse: false, unsummed: false });
  await new Promise((r) => setTimeout(r));
  assert.equal(asked.length, 2);
  s.want({ from: 5e5, to: 5e5 + 100 }, 0.1, rows, rows, bounds); // far: the one on its way is of no use
  assert.equal(asked.length, 3);
  answers[2]({ lanes: new Map(), coarse: true, unsummed: false }); // merged more than asked for: drawn, and asked for again
  await new Promise((r) => setTimeout(r));
  assert.equal(asked[3], asked[2].replace("&quick=1", ""));
  answers[3]({ lanes: new Map(), coarse: false, unsummed: false });
  await new Promise((r) => setTimeout(r));
  assert.equal(asked.length, 4);
  assert.ok(!s.pending);
});

test("an answer without states is asked for again once they are summed up", async () => {
  const asked: string[] = [];
  let ready = () => {};
  let unsummed = true;
  const s = new Source(
    async (params) => {
      asked.push(params);
      return { lanes: new Map(), coarse: false, unsummed };
    },
    () => s.want(...wanted),
    undefined,
    () => new Promise((done) => (ready = done)),
  );
  s.states = true;
  const rows = [{ lane: 0, first: 0, count: 5 }];
  const wanted: Parameters<Source["want"]> = [{ from: 0, to: 1000 }, 1, rows, rows, { from: 0, to: 1e6 }];
  s.want(...wanted);
  await new Promise((r) => setTimeout(r));
  s.want(...wanted);
  assert.ok(asked.length === 1 && !s.pending && s.answers[0].unsummed); // it will do until then
  unsummed = false;
  ready();
  await new Promise((r) => setTimeout(r));
  assert.deepEqual(asked, ["from=0&to=1500&width=1500&lanes=0:0:5&states=1&quick=1", "from=0&to=1500&width=1500&lanes=0:0:5&states=1"]);
  assert.ok(s.answers.length === 1 && !s.answers[0].unsummed);
});

test("answers are kept while they are small, and the latest and that of everything anyway", async () => {
  for (const [bars, want] of [[10, 3], [1 << 20, 2]]) {
    const s = new Source(async () => {
      const row: Row = { start: new Float64Array(3.5 * bars), duration: new Float64Array(0), busy: new Float32Array(0), func: new Uint32Array(0), calls: new Uint32Array(0), columns: null };
      return { lanes: new Map([[0, { rows: new Map([[0, row]]), gaps: null, states: null }]]), coarse: false, unsummed: false };
    }, () => {});
    const rows = [{ lane: 0, first: 0, count: 5 }];
    for (const w of [{ from: 0, to: 1e6 }, { from: 100, to: 1100 }, { from: 5e5, to: 5e5 + 100 }, { from: 7e5, to: 7e5 + 100 }]) {
      s.want(w, (w.to - w.from) / 1000, rows, rows, { from: 0, to: 1e6 });
      await new Promise((r) => setTimeout(r));
    }
    assert.deepEqual([s.answers.length, s.answers[0].span], [want, { from: 0, to: 1e6 }]);
    assert.ok(s.answers.some((a) => a.span.from > 6e5));
  }
});

test("trees are laid out largest first, and wrong parents left out", () => {
  const node = (name: string, parent: number, total: number, func = 1) => ({ func, name, parent, calls: 1, total_ns: total, self_ns: 0 });
  const root = grow([node("small", -1, 10), node("large", -1, 90), node("(others)", 1, 50, 0), node("inner", 1, 40), node("wrong", 17, 5)]);
  assert.deepEqual(levels(root).map((l) => l.map((b) => b.name)), [["all calls"], ["large", "small"], ["inner", "(others)"]]);
  assert.equal(root.total, 100);
  assert.equal(root.children[1].from, 90);
});

test("filters are parts or globs", () => {
  const f = (pattern: string, name: string) => matcher(pattern)({ name, module: "libc.so.6" });
  assert.ok(f("ALLOC", "zmalloc") && f("z*", "zmalloc") && f("?malloc", "zmalloc") && f("", "x") && f("libc", "x"));
  assert.ok(!f("alloc*", "zmalloc") && !f("z.*", "zmalloc"));
  assert.ok(!f("*".repeat(50) + "q", "z".repeat(5000)));
});

/** viewOfStates is an answer with the states of lane 3, from [start, duration, shares, faults]. */
function viewOfStates(list: [number, number, number, number][]): ArrayBuffer {
  const n = list.length;
  const b = new DataView(new ArrayBuffer(8 + 16 + 16 * n + 2 * 8 * Math.ceil(n / 2)));
  [0x57564c43, 1, 3, 0xffffffff, n, 0].forEach((v, i) => b.setUint32(4 * i, v, true));
  list.forEach(([start, duration, shares, faults], i) => {
    b.setFloat64(24 + 8 * i, start, true);
    b.setFloat64(24 + 8 * (n + i), duration, true);
    b.setUint32(24 + 16 * n + 4 * i, shares, true);
    b.setUint32(24 + 16 * n + 8 * Math.ceil(n / 2) + 4 * i, faults, true);
  });
  return b.buffer;
}

const running = 0xff;
const blocked = 0xff0000;
const half = 0x7f007f; // on a processor, and blocked

test("states come with the bars, and say what is under the pointer", () => {
  const lanes = decodeView(viewOfStates([[0, 10, running, 0], [10, 5, half, 2 | (1 << 16)], [15, 85, blocked, 0]]));
  const states = lanes.get(3)!.states!;
  assert.deepEqual([...states.start, ...states.duration], [0, 10, 15, 10, 5, 85]);
  const answers = [{ span: { from: 0, to: 200 }, lanes }];
  assert.deepEqual(sharesLines(sharesAt(answers, 3, 5, 0)), ["on a processor", "10 ns"]);
  assert.deepEqual(sharesLines(sharesAt(answers, 3, 12, 0)), ["on a processor 49.8 %, blocked 49.8 %", "5 ns", "2 page faults without input", "1 page fault with input (major)"]);
  assert.equal(sharesLines(sharesAt(answers, 3, 150, 0))[0], "not known");
  assert.equal(sharesAt(answers, 4, 5, 0), null);
});

test("the row of states and hatching are painted where they belong, and keep to their lines", () => {
  const [width, height] = [100, 30];
  const raster = new Raster();
  const pixels = new Uint32Array(width * height);
  const s = scheme(false);
  raster.begin(pixels, width, { from: 0, to: 100 });
  const ground = raster.ground({ from: 0, to: 100 }, s.ground, s.idle);
  raster.fill(0, height, ground);
  const states = decodeView(viewOfStates([[0, 40, running, 0], [40, 1, half, 1 << 16], [41, 39, blocked, 0]])).get(3)!.states!;
  const pieces = [{ span: { from: 0, to: 100 }, states }];
  assert.equal(paintStates(raster, 2, 10, ground, seenStates(pieces), s), 3);
  assert.equal(pixels[5 * width + 20], s.states.running);
  assert.equal(pixels[5 * width + 60], s.states.blocked);
  assert.equal(pixels[5 * width + 90], s.ground); // nothing is known
  assert.equal(pixels[5 * width + 40], s.states.major);
  assert.ok(pixels.subarray(0, 2 * width).every((p) => p === s.ground) && pixels.subarray(10 * width).every((p) => p === s.ground));
  // Of calls only bars are hatched, and only where their thread was blocked.
  const bar = 0xff112233;
  for (let y = 12; y < 20; y++) pixels.fill(bar, y * width + 10, y * width + 70);
  assert.equal(paintWaits(raster, 12, 28, ground, seenStates(pieces), s, 1), 1);
  const line = pixels.subarray(15 * width, 16 * width);
  assert.ok(line.subarray(10, 41).every((p) => p === bar));
  const stripes = line.subarray(41, 70).filter((p) => p !== bar).length;
  assert.ok(stripes >= 5 && stripes <= 7, `${stripes} stripes`);
  assert.ok(pixels.subarray(20 * width).every((p) => p === s.ground));
});

test("a lane with states has a row for them above its others", () => {
  const lane = (id: number, states: boolean, rows: number): Lane => ({ id, tid: id, pid: 1, goroutine: 0, name: "", kind: "thread", calls: rows, rows, start_ns: 0, end_ns: 1, dropped: 0, states });
  const l = new Layout([lane(0, true, 3), lane(1, false, 3), lane(2, true, 0)], 16, new Set());
  const [a, b, c] = l.slots;
  assert.equal(l.rowTop(b, 0) - b.top, 4);
  assert.equal(l.rowTop(a, 0) - a.top, 14);
  assert.equal(l.rowAt(a, a.top + 6), -1);
  assert.ok(l.inStrip(a, a.top + 6) && !l.inStrip(a, a.top + 15) && !l.inStrip(b, b.top + 6) && l.inStrip(c, c.top + 6));
  assert.equal(l.rowAt(a, a.top + 15), 0);
  // One without calls is asked for all the same.
  assert.deepEqual(l.stretches(0, l.height).map((s) => [s.lane, s.count]), [[0, 3], [1, 3], [2, 0]]);
});

test("what times are of, and a selected state, are in the URL", () => {
  const s = parse("#by=blocked&st=4.1234.5");
  assert.deepEqual([s.by, s.state], ["blocked", { lane: 4, at: 1234.5 }]);
  assert.equal(format(s), "by=blocked&st=4.1234.5");
  for (const bad of ["by=idle", "st=4", "st=.5", "st=a.b"]) assert.equal(format(parse(`#${bad}`)), format(initial()));
});

test("times are split in words, what isn't known too", () => {
  assert.equal(splitText({ cpu_ns: 600, ready_ns: 0, blocked_ns: 300 }, 1000), "cpu 600 ns (60.0 %), blocked 300 ns (30.0 %), unknown 100 ns (10.0 %)");
  assert.equal(splitText({ cpu_ns: 0, ready_ns: 0, blocked_ns: 0 }, 0), "nothing is known");
});

test("arrows come from wakers that are threads of the recording", () => {
  const x = { lane: 1, state: "blocked" as const, from_ns: 5, to_ns: 9 };
  assert.deepEqual(arrowsOf([{ ...x, waker: { tid: 7, lane: 2 } }, { ...x, waker: { kernel: true, lane: null } }, { ...x, waker: { tid: 8, lane: null } }, x]), [{ from: 2, to: 1, at: 9 }]);
});

test("stretches in which functions were off mark the pixels that they reach into", () => {
  const runs: [number, number, number][] = [[0, 100, 2], [250, 251, 1], [399, 900, 3]];
  const columns = offColumns(runs, { from: 50, to: 450 }, 8);
  assert.deepEqual([...columns!], [1, 0, 0, 0, 1, 0, 1, 1]);
  assert.equal(offColumns(runs, { from: 1000, to: 2000 }, 8), null);
  assert.equal(offColumns([], { from: 0, to: 1 }, 8), null);
  // The last pixel of what ends beyond, and what is of no length.
  assert.deepEqual([...offColumns([[100, 100, 1]], { from: 0, to: 100 }, 4)!], [0, 0, 0, 0]);
});

test("the stretch at an instant is found", () => {
  const runs: [number, number, number][] = [[0, 100, 2], [250, 251, 1], [399, 900, 3]];
  assert.deepEqual([-1, 0, 100, 101, 250, 398, 900, 901].map((at) => runAt(runs, at)?.[2] ?? null), [null, 2, 2, null, 1, null, 3, null]);
  assert.equal(runAt([], 5), null);
});

test("who was off somewhere is said in words", () => {
  const view = { most: 3, runs: [], whole: true };
  assert.deepEqual(offHere({ ...view, name: "parse" }, [0, 1e6, 1]), ["parse was off here", "from 0 ns to 1 ms; calls were not recorded"]);
  assert.equal(offHere(view, [0, 1e6, 1])[0], "1 function that was found was off here");
  assert.equal(offHere(view, [0, 1e6, 2])[0], "2 functions that were found were off here");
  assert.equal(callsOf(1204, false), "1,204");
});
