// What the program said, as far as it needs no browser.
import assert from "node:assert/strict";
import { test } from "node:test";

import { scheme } from "../src/color";
import { decodeView, flags, type Graph, type Row } from "../src/decode";
import { binding } from "../src/flows";
import { firstTrack, graphHeight, Layout, padding, sorted } from "../src/layout";
import { pausedSince } from "../src/pausing";
import { Raster, type Piece } from "../src/raster";
import { openEdges, paintGraph, paintSpans, paintTicks, saidLines, scaleOf, SpanPalettes, trackFacts, value, type SaidBar } from "../src/said";
import { saidIn } from "../src/saidin";
import { Source, type Answer } from "../src/source";
import type { Lane, Track } from "../src/types";
import { format, initial, parse } from "../src/urlstate";

const lane = (id: number, patch: Partial<Lane> = {}): Lane => ({ id, tid: id, pid: 1, goroutine: 0, name: `t${id}`, kind: "thread", calls: 1, rows: 2, start_ns: 0, end_ns: 1000, dropped: 0, ...patch });
const track = (i: number, patch: Partial<Track>): Lane => {
  const t: Track = { id: firstTrack + i, kind: "async", title: 1, name: `track ${i}`, rows: 2, count: 5, ...patch };
  return lane(t.id, { name: t.name, calls: 0, rows: 0, spans: t.kind === "counter" ? 0 : t.rows, track: t });
};
const row = (list: [start: number, duration: number, calls?: number, flag?: number][]): Row => ({
  start: Float64Array.from(list, (x) => x[0]),
  duration: Float64Array.from(list, (x) => x[1]),
  busy: Float32Array.from(list, (x) => x[1]),
  func: Uint32Array.from(list, (_, i) => i + 1),
  calls: Uint32Array.from(list, (x) => x[2] ?? 1),
  columns: null,
  flags: Uint8Array.from(list, (x) => x[3] ?? 0),
});
const graph = (list: [start: number, least: number, most: number, last: number][]): Graph => ({
  start: Float64Array.from(list, (x) => x[0]),
  least: Float64Array.from(list, (x) => x[1]),
  most: Float64Array.from(list, (x) => x[2]),
  last: Float64Array.from(list, (x) => x[3]),
  values: Uint32Array.from(list, () => 1),
});
const rasterOf = (width: number, height: number, visible = { from: 0, to: width }) => {
  const r = new Raster();
  r.begin(new Uint32Array(width * height), width, visible);
  return r;
};
const at = (r: Raster, x: number, y: number) => r.pixels[y * r.width + x];

/** answer is the bytes of api/view with these blocks. */
function answer(blocks: [lane: number, row: number, n: number, floats: number[][], words: number[][]][]): ArrayBuffer {
  const out: number[] = [];
  const view = new DataView(new ArrayBuffer(8));
  const bytes = () => out.push(...new Uint8Array(view.buffer));
  const pair = (a: number, b: number) => {
    view.setUint32(0, a, true);
    view.setUint32(4, b, true);
    bytes();
  };
  pair(0x57564c43, blocks.length);
  for (const [lane, row, n, floats, words] of blocks) {
    pair(lane, row);
    pair(n, 0);
    for (const list of floats)
      for (const f of list) {
        view.setFloat64(0, f, true);
        bytes();
      }
    for (const list of words) for (let i = 0; i < list.length; i += 2) pair(list[i], list[i + 1] ?? 0);
  }
  return Uint8Array.from(out).buffer;
}

test("spans, steps, instants and counters are read from an answer", () => {
  const bars = (n: number): [number[][], number[][]] => [[Array(n).fill(5), Array(n).fill(7), Array(n).fill(6)], [Array(n).fill(3), Array(n).fill(1), Array(n).fill(2)]];
  const lanes = decodeView(
    answer([
      [0, 0x80000001, 3, ...bars(3)],
      [0, 0xfffffffe, 1, ...bars(1)],
      [firstTrack, 0xc0000002, 2, ...bars(2)],
      [firstTrack + 1, 0xfffffffd, 3, [[1, 2, 3], [0, 0, 0], [9, 9, 9], [4, 5, 6]], [[1, 1, 8]]],
      [0, 0, 1, ...bars(1)],
    ]),
  );
  const said = lanes.get(0)!.said!;
  assert.deepEqual([...said.spans.keys()], [1]);
  assert.deepEqual([...said.spans.get(1)!.flags!], [2, 2, 2]);
  assert.deepEqual([...said.instants!.func], [3]);
  assert.equal(lanes.get(0)!.rows.get(0)!.start.length, 1);
  assert.deepEqual([...lanes.get(firstTrack)!.said!.steps.keys()], [2]);
  assert.deepEqual([...lanes.get(firstTrack + 1)!.said!.graph!.last], [4, 5, 6]);
  assert.deepEqual([...lanes.get(firstTrack + 1)!.said!.graph!.values], [1, 1, 8]);
});

test("spans lie between states and calls, and tracks above threads", () => {
  const lanes = [lane(0, { states: true, spans: 3 }), lane(1), lane(2, { rows: 0, calls: 0, instants: 4 }), track(0, { rows: 4 }), track(1, { kind: "counter", name: "a counter" })];
  const order = sorted(lanes, "activity").map((l) => l.id - (l.track ? firstTrack - 100 : 0));
  assert.deepEqual(order, [101, 100, 0, 1, 2]);
  const l = new Layout(sorted(lanes, "activity"), 20, new Set([1]));
  const s = l.byLane.get(0)!;
  assert.ok(l.spanTop(s, 0) >= l.stripTop(s) + 8 && l.rowTop(s, 0) >= l.spanTop(s, 3));
  assert.equal(l.spanAt(s, l.spanTop(s, 1) + 1), 1);
  assert.equal(l.spanAt(s, l.rowTop(s, 0) + 1), -1);
  assert.equal(l.rowAt(s, l.spanTop(s, 2) + 1), -1);
  assert.equal(l.byLane.get(2)!.spans, 1); // instants have a row, without spans too
  const counter = l.byLane.get(firstTrack + 1)!;
  assert.ok(counter.graph && counter.height >= graphHeight + 2 * padding);
  const asked = new Map(l.stretches(0, l.height).map((r) => [r.lane, r]));
  assert.deepEqual(asked.get(0), { lane: 0, first: 0, count: 2, spans: { first: 0, count: 3 } });
  assert.deepEqual(asked.get(firstTrack), { lane: firstTrack, first: 0, count: 0, spans: { first: 0, count: 4 } });
  assert.deepEqual(asked.get(firstTrack + 1)!.spans, { first: 0, count: 1 });
  assert.equal(asked.get(1)!.spans, undefined);
  const hidden = new Layout(lanes.filter((x) => !x.track), 20, new Set(), false);
  assert.equal(hidden.byLane.get(0)!.spans, 0);
});

test("what the program said is asked for with the calls, and again if rows of it are missing", async () => {
  const asked: string[] = [];
  const s = new Source((params) => {
    asked.push(params);
    return Promise.resolve({ lanes: new Map(), coarse: false, unsummed: false });
  }, () => {});
  const bounds = { from: 0, to: 1000 };
  const want = (spans: number) => {
    const rows = [{ lane: 0, first: 0, count: 2, spans: { first: 0, count: spans } }, { lane: firstTrack, first: 0, count: 0, spans: { first: 0, count: 4 } }];
    s.want(bounds, 1, rows, rows, bounds);
  };
  want(1);
  await new Promise((done) => setTimeout(done));
  assert.match(asked[0], /lanes=0:0:2&spans=0:0:1,2147483648:0:4/);
  want(1);
  assert.equal(asked.length, 1);
  want(3);
  assert.equal(asked.length, 2);
});

test("a span is drawn apart from a call: a pale body below a strong line", () => {
  const s = scheme(false);
  const p = new SpanPalettes((id) => `title ${id}`, s, null);
  const r = rasterOf(100, 20);
  const ground = r.ground({ from: 0, to: 100 }, s.ground, s.idle).slice();
  const pieces: Piece[] = [{ span: { from: 0, to: 100 }, grid: { from: 0, to: 100, width: 100 }, row: row([[10, 40], [60, 20, 5]]) }];
  paintSpans(r, 0, 18, ground, pieces, p, 10, 1);
  assert.notEqual(at(r, 20, 0), at(r, 20, 10));
  assert.equal(at(r, 20, 2), at(r, 20, 17));
  assert.equal(at(r, 5, 5), s.ground);
  assert.equal(r.bars, 2);
  assert.deepEqual(r.labels.map((l) => [l.func, l.calls]), [[1, 1], [2, 5]]);
});

test("a counter's spike is seen, however narrow, and what holds goes on", () => {
  const s = scheme(false);
  const r = rasterOf(100, 21);
  r.pixels.fill(s.ground);
  const [line, area] = s.said.graph;
  const painted = paintGraph(r, 0, 21, [[graph([[10, 2, 2, 2], [50, 0, 10, 2], [80, 5, 5, 5]]), { from: 0, to: 100 }]], { from: 0, to: 10 }, [line, area], 1);
  assert.equal(painted, 3);
  assert.equal(at(r, 5, 20), s.ground); // nothing is known before the first
  assert.equal(at(r, 30, 16), line);
  assert.equal(at(r, 30, 19), area);
  assert.equal(at(r, 50, 0), line); // the spike
  assert.equal(at(r, 50, 20), line);
  assert.equal(at(r, 60, 16), line);
  assert.equal(at(r, 99, 10), line); // the last one holds
  // The widest scale that there is.
  paintGraph(r, 0, 21, [[graph([[0, -Number.MAX_VALUE, Number.MAX_VALUE, 0]]), { from: 0, to: 100 }]], { from: -Number.MAX_VALUE, to: Number.MAX_VALUE }, [line, area], 1);
  assert.equal(at(r, 50, 10), line);
});

test("a counter's scale reaches to zero if that is near", () => {
  assert.deepEqual(scaleOf({ min: 2, max: 10 }), { from: 0, to: 10 });
  assert.deepEqual(scaleOf({ min: 8, max: 10 }), { from: 8, to: 10 });
  assert.deepEqual(scaleOf({ min: -10, max: -1 }), { from: -10, to: 0 });
  assert.deepEqual(scaleOf({ min: 7, max: 7 }), { from: 6, to: 8 });
  assert.deepEqual([value(1234567), value(-3), value(0.1234567), value(1e300), value(NaN)], ["1,234,567", "−3", "0.123457", "1e+300", "–"]);
});

test("instants are ticks, one a pixel", () => {
  const s = scheme(false);
  const r = rasterOf(100, 10);
  r.pixels.fill(s.ground);
  assert.equal(paintTicks(r, 0, 10, [[row([[10, 0], [10.2, 0], [50, 0], [150, 0]]), { from: 0, to: 100 }]], s.said.instant, 1), 2);
  assert.equal(at(r, 10, 9), s.said.instant);
  assert.equal(at(r, 12, 0), s.said.instant); // its head
  assert.equal(at(r, 12, 9), s.ground);
  // Where they crowd they leave the spans in sight.
  assert.equal(paintTicks(r, 0, 10, [[row([[70, 0], [72, 0], [74, 0]]), { from: 0, to: 100 }]], s.said.instant, 1), 3);
  assert.deepEqual([at(r, 72, 0), at(r, 72, 9), at(r, 71, 0)], [s.said.instant, s.ground, s.ground]);
});

test("open edges are those of spans that do not begin or end in the reel", () => {
  const r = row([[0, 10, 1, flags.unstarted], [20, 10], [40, 10, 1, flags.unfinished], [60, 10, 7, flags.unfinished]]);
  assert.deepEqual(openEdges(r, { from: 0, to: 100 }), [{ at: 0, left: true, width: 10 }, { at: 50, left: false, width: 10 }]);
});

test("what is at a place of the screen is found, and flows bind to the innermost", () => {
  const lanes = [lane(0, { spans: 2 }), track(1, { kind: "counter" })];
  const l = new Layout(lanes, 20, new Set());
  const s = l.byLane.get(0)!;
  const g = l.byLane.get(firstTrack + 1)!;
  const spans = new Map([[0, row([[100, 400], [520, 60]])], [1, row([[200, 100], [480, 120]])]]); // the last two cross
  const a = {
    span: { from: 0, to: 1000 },
    nsPerPixel: 1,
    rows: new Map(l.stretches(0, l.height).map((r) => [r.lane, r])),
    lanes: new Map([
      [0, { rows: new Map([[0, row([[0, 900]])], [1, row([[600, 100]])]]), gaps: null, states: null, said: { spans, steps: new Map(), instants: row([[450, 0]]), graph: null } }],
      [firstTrack + 1, { rows: new Map(), gaps: null, states: null, said: { spans: new Map(), steps: new Map(), instants: null, graph: graph([[10, 1, 1, 1], [500, 0, 9, 4]]) } }],
    ]),
    grid: { from: 0, to: 1000, width: 1000 },
    bytes: 0,
    coarse: false,
    unsummed: false,
  } as Answer;
  const found = (slot: typeof s, y: number, at: number) => saidIn([a], l, slot, y, at, 1);
  assert.deepEqual([found(s, l.spanTop(s, 0) + 2, 150)?.start, found(s, l.spanTop(s, 1) + 2, 250)?.row, found(s, l.spanTop(s, 1) + 2, 150)], [100, 1, null]);
  assert.equal(found(s, l.spanTop(s, 0) + 2, 452)?.kind, "instant");
  assert.deepEqual([found(g, g.top + 10, 5), found(g, g.top + 10, 300)?.value?.last, found(g, g.top + 10, 700)?.value?.most], [null, 1, 9]);
  const source = { answers: [a] } as Source;
  assert.equal(binding(l, source, s, 250), l.spanTop(s, 1) + l.spanRow / 2);
  assert.equal(binding(l, source, s, 350), l.spanTop(s, 0) + l.spanRow / 2);
  assert.equal(binding(l, source, s, 510), l.spanTop(s, 1) + l.spanRow / 2);
  assert.equal(binding(l, source, s, 550), l.spanTop(s, 0) + l.spanRow / 2);
  assert.equal(binding(l, source, s, 650), l.rowTop(s, 1) + l.row / 2);
  assert.equal(binding(l, source, s, 800), l.rowTop(s, 0) + l.row / 2);
});

test("a pause goes on while its end is not there and the recording is in progress", () => {
  const over = { from_ns: 1, to_ns: 2 };
  const open = { from_ns: 5, to_ns: 5, by: "page", open: true };
  assert.equal(pausedSince(true, [over, open]), open);
  assert.equal(pausedSince(true, [over]), null);
  assert.equal(pausedSince(false, [open]), null);
});

test("tooltips show titles as text that can be seen", () => {
  const bar: SaidBar = { kind: "span", lane: 0, row: 0, start: 0, duration: 1000, busy: 1000, title: 1, count: 1, flags: flags.unfinished };
  assert.deepEqual(saidLines(bar, "a\u202eb<b>", "cat\n"), ["a‹202E›b<b>", "span, 1 µs", "its end is not in the recording", "cat‹0A›"]);
  assert.match(saidLines({ ...bar, count: 12, flags: 0 }, "x", "")[0], /12 spans/);
  assert.match(saidLines({ ...bar, count: 3, flags: flags.several }, "x", "")[0], /3 further spans/);
  assert.match(saidLines({ ...bar, kind: "value", value: { least: 1, most: 5, last: 2 }, count: 9 }, "queue", "")[1], /from 1 to 5, 9 values/);
  assert.match(trackFacts({ id: 1, kind: "async", title: 1, name: "x", rows: 24, count: 100, more: 5 }), /100 asynchronous spans · 5 spans in the last row/);
});

test("what is selected of it is in the address", () => {
  const s = { ...initial(), mark: { kind: "value" as const, lane: firstTrack + 3, row: 0, at: 12345 }, said: false, ranged: "counters" as const };
  assert.deepEqual(parse(format(s)), s);
  assert.deepEqual(parse("#mk=evil.1.2.3").mark?.kind, "span");
  assert.equal(parse("#mk=span.1.2").mark, null);
  assert.equal(parse("#mk=span.-1.2.3").mark, null);
  assert.equal(parse("#ranged=toString").ranged, "functions");
});
