// The lanes of one reel: what they show, where they are scrolled and zoomed to.
// Its state for tests and programs stands in the canvas's data attributes; see README.md beside.

import type { Api, Names } from "./api";
import type { Scheme } from "./color";
import { firstEndingAfter } from "./decode";
import { el, fitCanvas } from "./dom";
import type { Mark } from "./dump";
import { Input } from "./input";
import { Layout, sorted, type Slot } from "./layout";
import { LaneList } from "./lanelist";
import { labelOf, Painter, shadeOf, tooltip, type Coloring } from "./paint";
import { shown } from "./names";
import type { Bar, Listener } from "./bar";
import { blankLines } from "./blank";
import { offWhile } from "./off";
import { OffSource } from "./offsource";
import { OffStrip } from "./offstrip";
import { Palette } from "./palette";
import { paintRuler, rulerHeight } from "./ruler";
import { saidAround, saidIn } from "./saidin";
import { saidLines, SpanPalettes, valueLines, type SaidBar } from "./said";
import { Source } from "./source";
import type { Arrow } from "./arrows";
import { Tip } from "./tip";
import { sharesAt, sharesLines } from "./states";
import type { Dump, Flow, Lane, Mark as SaidMark, Offs, Pause, State } from "./types";
import { stateLines } from "./waits";
import { approach, around, clamp, length, pan, same, zoom, type Span } from "./viewport";

export type { Bar } from "./bar";

export const font = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';

// More than so many milliseconds for the bars leave none for the rest of a frame.
const mostCost = 7;
// Milliseconds after which what hasn't changed is taken to be at rest.
const stillAfter = 120;

export class Timeline {
  readonly canvas = el("canvas", {
    class: "lanes",
    tabindex: 0,
    role: "application",
    "aria-label": "Timeline of calls. W and S zoom, A and D pan, Enter selects a call, Shift with arrows goes from call to call. Press ? for all keys.",
  });
  readonly ruler = el("canvas", { class: "ruler", title: "drag to measure" });
  readonly corner = el("div", { class: "lane-corner" });
  readonly scroller = el("div", { class: "lane-scroll", tabindex: -1 });
  readonly element: HTMLElement;
  readonly source: Source;
  readonly painter: Painter;
  readonly offs: OffSource; // when functions were off
  readonly offStrip: OffStrip;
  layout = new Layout([], 16, new Set());
  visible: Span;
  target: Span;
  range: Span | null = null;
  selected: { lane: number; row: number; start: number; end: number } | null = null;
  match: ReadonlySet<number> | null = null;
  state: { lane: number; from: number; to: number } | null = null; // a stretch of states that is selected
  arrows: Arrow[] = [];
  dump: Dump | null = null;
  marks: Mark[] = []; // of a dump's triggers
  // What the program said:
  titles: Names | null = null; // what that is called
  item: { lane: number; row: number; start: number; end: number; kind: string } | null = null; // selected
  titleMatch: ReadonlySet<number> | null = null;
  pauses: Pause[] = [];
  strong: Flow[] = []; // of what is selected
  flows: Flow[] = []; // that are in sight
  private said = true; // is shown
  private pointed: SaidBar | null = null;
  private spanPalettes: SpanPalettes | null = null;
  private titleLabels = new Map<number, string>();
  private sticky: HTMLElement;
  private spacer = el("div", { class: "lane-spacer" });
  private tip = new Tip(() => this.size);
  private hair = el("div", { class: "hair", hidden: true });
  private list: LaneList;
  private listed: { layout: Layout | null; top: number; height: number } = { layout: null, top: 0, height: 0 }; // what the list shows
  private lanes: Lane[] = [];
  private collapsed = new Set<number>();
  private row = 16;
  private sort = "activity";
  private only: number | null = null;
  private hovered: Bar | null = null;
  private colors: Coloring | null = null;
  private palette: Palette | null = null;
  private labels = new Map<number, string>();
  private frame = 0;
  private last = 0;
  private width = 1;
  private height = 1;
  private scrollScale = 1; // pixels of lanes for one of scrolling
  private scrolled: number | null = null; // of the scroller, if known
  private moved = { from: 0, to: 0, top: 0, at: -Infinity }; // what was shown last, and since when
  private cost = 0; // of painting all of the screen's pixels, ms
  private coarse = false; // the last frame was
  private sharpen = 0; // timer
  private calm = matchMedia("(prefers-reduced-motion: reduce)");
  frameTimes: number[] | null = null;

  constructor(
    private api: Api,
    private names: Names,
    private scheme: () => Scheme,
    private bounds: () => Span,
    readonly listener: Listener,
  ) {
    this.visible = this.target = { ...bounds() };
    this.source = new Source(api.view, () => this.draw(), (err) => listener.failed(err), () => api.summed());
    this.painter = new Painter(this.canvas);
    this.offs = new OffSource(api, () => this.draw());
    this.offStrip = new OffStrip(api, this.offs, (name) => listener.find?.(name));
    this.list = new LaneList(
      (lane) => this.toggle(lane),
      (lane) => listener.lane(lane),
    );
    const pane = el("div", { class: "lane-pane" }, this.canvas, this.hair, this.tip.element);
    this.sticky = el("div", { class: "lane-sticky" }, this.list.element, pane);
    this.scroller.append(this.sticky, this.spacer);
    this.element = el("div", { class: "timeline" }, this.corner, this.ruler, this.offStrip.names, this.offStrip.canvas, this.scroller);
    this.scroller.addEventListener("scroll", () => {
      this.scrolled = null;
      this.draw();
      listener.moved();
    });
    new ResizeObserver(() => this.resize()).observe(this.scroller);
    new Input(this);
  }

  /** setLanes gives the lanes to show; only limits them to one. */
  setLanes(lanes: Lane[], only: number | null = null) {
    this.lanes = lanes;
    this.source.states = lanes.some((l) => l.states);
    this.only = only;
    this.list.clear();
    this.relayout();
  }

  /** mark shows what a dump was made for. */
  mark(dump: Dump | null, marks: Mark[]) {
    this.dump = dump;
    this.marks = marks;
    this.list.marked = new Set(marks.flatMap((m) => (m.lane === null ? [] : [m.lane])));
    this.list.clear();
    this.listed.layout = null;
    this.draw();
  }

  setRows(row: number, collapsed: Iterable<number>, sort: string) {
    this.row = row;
    this.collapsed = new Set(collapsed);
    this.sort = sort;
    this.relayout();
  }

  get rowHeight(): number {
    return this.row;
  }

  /** showSaid shows what the program said, or leaves it out. */
  showSaid(said: boolean) {
    if (said === this.said) return;
    this.said = said;
    this.pointed = null;
    this.list.clear();
    this.relayout();
  }

  get closed(): number[] {
    return [...this.collapsed].sort((a, b) => a - b);
  }

  toggle(lane: number) {
    if (!this.collapsed.delete(lane)) this.collapsed.add(lane);
    this.relayout();
    this.listener.moved();
  }

  collapseAll(closed: boolean) {
    this.collapsed = new Set(closed ? this.lanes.filter((l) => l.rows > 1 || (l.spans ?? 0) > 1).map((l) => l.id) : []);
    this.relayout();
    this.listener.moved();
  }

  private relayout() {
    const lanes = this.only === null ? sorted(this.lanes, this.sort) : this.lanes.filter((l) => l.id === this.only);
    this.layout = new Layout(this.said ? lanes : lanes.filter((l) => !l.track), this.row, this.collapsed, this.said);
    this.resize();
  }

  private resize() {
    this.height = Math.max(1, this.scroller.clientHeight);
    const pane = this.canvas.parentElement!;
    this.width = Math.max(1, pane.clientWidth);
    this.sticky.style.height = `${this.height}px`;
    // Elements can't be arbitrarily high.
    const beyond = Math.max(0, this.layout.height - this.height);
    const drawn = Math.min(beyond, 8e6);
    this.scrollScale = drawn > 0 ? beyond / drawn : 1;
    this.spacer.style.height = `${drawn}px`;
    this.scrolled = null;
    this.canvas.style.width = this.ruler.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.height}px`;
    this.ruler.style.height = `${rulerHeight}px`;
    fitCanvas(this.canvas, this.width, this.height);
    fitCanvas(this.ruler, this.width, rulerHeight);
    this.draw();
  }

  // Asking the scroller makes the browser lay out the page, which a frame has no time for.
  get top(): number {
    return (this.scrolled ??= this.scroller.scrollTop) * this.scrollScale;
  }

  set top(y: number) {
    this.scroller.scrollTop = y / this.scrollScale;
    this.scrolled = null;
  }

  // ---- moving

  /** show goes to a range, smoothly unless asked otherwise. */
  show(w: Span, smoothly = true) {
    this.target = clamp(w, this.bounds());
    if (!smoothly || this.calm.matches) this.visible = this.target;
    this.draw();
    this.listener.moved();
  }

  all() {
    this.show(this.bounds());
  }

  fit(s: Span) {
    this.show(around(s, this.bounds()));
  }

  /** zoomBy makes the visible range factor times as long, around a pixel or else what is selected, or the middle. */
  zoomBy(factor: number, x?: number) {
    const t = this.target;
    const at = x === undefined ? this.focus() : t.from + (x / this.width) * length(t);
    this.show(zoom(t, at, factor, this.bounds()));
  }

  private focus(): number {
    const x = this.pointerX;
    if (x !== null) return this.target.from + (x / this.width) * length(this.target);
    const s = this.selected;
    if (s && s.end > this.target.from && s.start < this.target.to) {
      return (Math.max(s.start, this.target.from) + Math.min(s.end, this.target.to)) / 2;
    }
    return (this.target.from + this.target.to) / 2;
  }

  /** pointerX is where the pointer is, if it is over the lanes. */
  pointerX: number | null = null;

  /** panBy moves the visible range by a share of its length. */
  panBy(share: number, smoothly = true) {
    this.show(pan(this.target, share * length(this.target), this.bounds()), smoothly);
  }

  timeAt(x: number): number {
    return this.visible.from + (x / this.width) * length(this.visible);
  }

  get size(): { width: number; height: number } {
    return { width: this.width, height: this.height };
  }

  /** reveal scrolls a row into sight, and the visible range to the span if it is not. */
  reveal(lane: number, row: number, span: Span, fit: boolean) {
    const slot = this.layout.byLane.get(lane);
    if (!slot) return;
    this.resize(); // the panel may just have taken some room
    if (row >= slot.rows && slot.collapsed) this.toggle(lane);
    const y = this.layout.rowTop(this.layout.byLane.get(lane)!, row);
    if (y < this.top + 8 || y + this.row > this.top + this.height - 8) this.top = Math.max(0, y - this.height / 3);
    const t = this.target;
    const outside = span.to <= t.from || span.from >= t.to;
    const tiny = length(span) < length(t) / 400;
    const huge = length(span) > length(t) * 1.5 && (span.from < t.from || span.to > t.to);
    if (fit) this.show(around(span, this.bounds(), tiny || huge ? 2 : 1.2));
    else if (outside) this.show(around(span, this.bounds(), 2));
    this.draw();
  }

  // ---- what is where

  /** barAt is what is drawn at a point of the canvas, a pixel to either side of it included. */
  barAt(x: number, y: number): Bar | null {
    const top = y + this.top;
    const slot = this.layout.at(top);
    if (!slot) return null;
    const row = this.layout.rowAt(slot, top);
    if (row < 0) return null;
    return this.barOf(slot, row, this.timeAt(x), (1.5 / this.width) * length(this.visible));
  }

  private barOf(slot: Slot, row: number, at: number, near: number): Bar | null {
    const answers = this.source.answers.filter((a) => a.span.from <= at && a.span.to >= at);
    for (let k = answers.length - 1; k >= 0; k--) {
      const asked = answers[k].rows.get(slot.lane.id);
      if (!asked || row < asked.first || row >= asked.first + asked.count) continue;
      const r = answers[k].lanes.get(slot.lane.id)?.rows.get(row);
      if (!r) return null;
      const i = firstEndingAfter(r, at - near);
      if (i >= r.start.length || r.start[i] > at + near) return null;
      // Of two that are near, the one under the pointer.
      const j = i + 1 < r.start.length && r.start[i] + r.duration[i] < at && r.start[i + 1] <= at ? i + 1 : i;
      return { lane: slot.lane.id, row, start: r.start[j], duration: r.duration[j], busy: r.busy[j], func: r.func[j], calls: r.calls[j] };
    }
    return null;
  }

  /** stateAt is the thread whose row of states is at a point of the canvas, and the instant. */
  stateAt(x: number, y: number): { lane: number; at: number } | null {
    const slot = this.layout.at(y + this.top);
    return slot && this.layout.inStrip(slot, y + this.top) ? { lane: slot.lane.id, at: this.timeAt(x) } : null;
  }

  /** saidAt is what the program said at a point of the canvas, a few pixels to either side of it included. */
  saidAt(x: number, y: number): SaidBar | null {
    const top = y + this.top;
    const slot = this.layout.at(top);
    if (!slot || (!slot.graph && slot.spans === 0)) return null;
    return saidIn(this.source.answers, this.layout, slot, top, this.timeAt(x), length(this.visible) / this.width);
  }

  /** revealSaid scrolls a row of what the program said into sight, and the visible range to the span if it is not. */
  revealSaid(lane: number, row: number, span: Span) {
    const slot = this.layout.byLane.get(lane);
    if (!slot) return;
    this.resize();
    if (row >= slot.spans && slot.collapsed && !slot.graph) this.toggle(lane);
    const s = this.layout.byLane.get(lane)!;
    const y = s.graph ? s.top : this.layout.spanTop(s, row);
    if (y < this.top + 8 || y + this.layout.spanRow > this.top + this.height - 8) this.top = Math.max(0, y - this.height / 3);
    const t = this.target;
    if (span.to <= t.from || span.from >= t.to) this.show(length(span) > length(t) || length(span) < length(t) / 400 ? pan(t, (span.from + span.to) / 2 - (t.from + t.to) / 2, this.bounds()) : around(span, this.bounds(), 2));
    this.draw();
  }

  /** centreBar is a bar near the middle of what is shown, for those who have no pointer. */
  centreBar(): Bar | null {
    const at = (this.target.from + this.target.to) / 2;
    for (const reach of [1.5 / this.width, 0.02, 0.1, 0.5]) {
      for (const slot of this.layout.between(this.top, this.top + this.height)) {
        const bar = slot.rows > 0 ? this.barOf(slot, 0, at, reach * length(this.target)) : null;
        if (bar) return bar;
      }
    }
    return null;
  }

  /** centreSaid is the same of what the program said. */
  centreSaid = () => saidAround(this.source.answers, this.layout, { from: this.top, to: this.top + this.height }, this.target, this.width);

  /** neighbour is the bar before or after a call in its row, or the first below it. */
  neighbour(c: { lane: number; row: number; from: number; to: number }, to: "before" | "after" | "callee"): Bar | null {
    const row = to === "callee" ? c.row + 1 : c.row;
    for (let k = this.source.answers.length - 1; k >= 0; k--) {
      const r = this.source.answers[k].lanes.get(c.lane)?.rows.get(row);
      if (!r) continue;
      // A call may be one of many in a merged bar, which is then passed over.
      let i = firstEndingAfter(r, c.from);
      if (to === "before") i--;
      else if (to === "after") while (i < r.start.length && r.start[i] < c.to) i++;
      if (i < 0 || i >= r.start.length || (to === "callee" && r.start[i] >= c.to)) continue;
      return { lane: c.lane, row, start: r.start[i], duration: r.duration[i], busy: r.busy[i], func: r.func[i], calls: r.calls[i] };
    }
    return null;
  }

  hover(x: number, y: number) {
    const bar = this.barAt(x, y);
    const old = this.hovered;
    if (bar?.lane !== old?.lane || bar?.row !== old?.row || bar?.start !== old?.start) {
      this.hovered = bar;
      this.listener.hovered(bar);
      this.draw();
    }
    this.point(bar ? null : this.saidAt(x, y));
    this.pointerAt = x;
    this.showTip(x, y, bar);
    if (bar?.calls !== 1 && (!this.pointed || this.pointed.kind !== "span" || this.pointed.count > 1)) this.askState(bar ? null : this.stateAt(x, y), x, y);
    this.hair.hidden = false;
    this.hair.style.transform = `translateX(${Math.round(x)}px)`;
  }

  private pointerAt = 0;

  private point(said: SaidBar | null) {
    const old = this.pointed;
    if (!said && !old) return;
    this.pointed = said;
    if (said?.kind === "value" || said?.lane !== old?.lane || said?.row !== old?.row || said?.start !== old?.start || said?.kind !== old?.kind) this.draw();
  }

  // What a stretch of states is exactly, is asked for when the pointer rests on it.
  private askState(p: { lane: number; at: number } | null, x: number, y: number) {
    this.tip.rest();
    if (p) this.tip.ask((signal) => this.api.json<State | null>("state", { lane: p.lane, at: Math.floor(p.at) }, signal).then((s) => s && stateLines(s)), x, y);
  }

  leave() {
    this.askState(null, 0, 0);
    this.tip.element.hidden = this.hair.hidden = true;
    this.point(null);
    if (this.hovered) {
      this.hovered = null;
      this.draw();
    }
  }

  private showTip(x: number, y: number, bar: Bar | null) {
    let lines: string[] = [];
    if (bar) {
      const n = this.names.get(bar.func);
      lines = tooltip(bar.func === 0 ? undefined : n?.name, n?.module, bar);
      if (bar.calls === 1) this.askOff(bar, lines, x, y);
    } else if (this.pointed) {
      const n = this.titles?.get(this.pointed.title);
      lines = saidLines(this.pointed, n?.name, n?.module);
      if (this.pointed.kind === "span" && this.pointed.count === 1) this.askSaid(this.pointed, lines, x, y);
    } else if (this.stateAt(x, y)) {
      const { lane, at } = this.stateAt(x, y)!;
      lines = sharesLines(sharesAt(this.source.answers, lane, at, (0.5 / this.width) * length(this.visible)));
    } else {
      lines = blankLines(this, this.timeAt(x), this.layout.at(y + this.top));
    }
    this.tip.show(lines, x, y);
  }

  // Which functions were off while a call ran is asked when the pointer rests: without an answer the tip is as it was.
  private askOff(b: Bar, lines: string[], x: number, y: number) {
    this.tip.rest();
    const reel = this.api.info.reels[this.api.reel];
    if (!reel.off && !reel.live) return;
    const range = { from: Math.floor(b.start), to: Math.ceil(b.start + b.duration) };
    this.tip.ask((signal) => this.api.json<Offs | null>("offs", range, signal).then((off) => off && [...lines, offWhile(off)]), x, y);
  }

  // So are a span's arguments.
  private askSaid(b: SaidBar, lines: string[], x: number, y: number) {
    this.tip.rest();
    const place = { kind: "span", lane: b.lane, row: b.row, at: Math.floor(b.start + b.duration / 2), brief: 1 };
    this.tip.ask((signal) => this.api.json<SaidMark | null>("mark", place, signal).then((m) => m && [...lines, ...valueLines(m)]), x, y);
  }

  // ---- drawing

  recolor() {
    this.colors = this.palette = this.spanPalettes = null;
    this.draw();
  }

  /** namesArrived lets bars be drawn with their names and colours. */
  namesArrived() {
    this.palette?.namesArrived();
    this.spanPalettes?.namesArrived();
    this.draw();
  }

  draw() {
    if (this.frame !== 0) return;
    this.canvas.dataset.state = "moving";
    this.frame = requestAnimationFrame((t) => this.tick(t));
  }

  private tick(now: number) {
    this.frame = 0;
    if (!this.element.isConnected || this.scroller.clientHeight === 0) return;
    const began = performance.now();
    const moving = !same(this.visible, this.target);
    if (moving) {
      this.visible = approach(this.visible, this.target, this.last > 0 ? Math.min(now - this.last, 50) : 16);
    }
    this.last = moving ? now : 0;
    this.fetch();
    this.paint(this.mayBeCoarse(began));
    this.listener.painted?.();
    this.frameTimes?.push(performance.now() - began);
    if (!same(this.visible, this.target)) this.draw();
  }

  // Where the screen has finer pixels than CSS and a frame takes too long for them, they wait until nothing moves.
  private mayBeCoarse(now: number): boolean {
    const { visible: w, top, moved } = this;
    if (moved.from !== w.from || moved.to !== w.to || moved.top !== top) this.moved = { from: w.from, to: w.to, top, at: now };
    return this.cost > mostCost && this.canvas.width > 1.2 * this.width && now - this.moved.at < stillAfter;
  }

  private fetch() {
    const rows = this.layout.stretches(this.top, this.top + this.height);
    const ahead = this.layout.stretches(this.top - this.height, this.top + 2 * this.height);
    // Pixels of the device: bars are merged as they are drawn.
    const nsPerPixel = length(this.target) / this.canvas.width;
    this.source.want(this.target, nsPerPixel, rows, ahead, this.bounds());
    this.offs.want(this.target, this.bounds());
  }

  private paint(coarse: boolean) {
    const began = performance.now();
    const scheme = this.scheme();
    this.colors ??= shadeOf((f) => this.listener.colorKey(f), scheme);
    if (this.palette?.match !== this.match) this.palette = null;
    this.palette ??= new Palette(this.colors, this.match, this.colors.unknown);
    const h = this.hovered;
    if (this.spanPalettes?.match !== this.titleMatch) this.spanPalettes = null;
    this.spanPalettes ??= new SpanPalettes((id) => this.titles?.get(id)?.name, scheme, this.titleMatch);
    const p = this.pointed;
    this.painter.paint({
      visible: this.visible,
      top: this.top,
      width: this.width,
      height: this.height,
      coarse,
      layout: this.layout,
      source: this.source,
      bounds: this.bounds(),
      scheme,
      font,
      name: (f) => this.label(f),
      palette: this.palette,
      range: this.range,
      dump: this.dump,
      marks: this.marks,
      selected: this.selected,
      state: this.state,
      arrows: this.arrows,
      title: (id) => this.titleLabel(id),
      spans: this.spanPalettes,
      item: this.item,
      pointed: p && { lane: p.lane, row: p.row, start: p.start, end: p.start + (p.kind === "value" ? 0 : p.duration), kind: p.kind, value: p.value?.last },
      pointer: p?.kind === "value" ? this.pointerAt : null,
      flows: this.said ? this.flows : [],
      strong: this.said ? this.strong : [],
      pauses: this.pauses,
      off: this.offs.found,
      hovered: h && { lane: h.lane, row: h.row, start: h.start, end: h.start + h.duration },
    });
    if (!coarse) this.cost += 0.4 * (performance.now() - began - this.cost);
    this.coarse = coarse;
    clearTimeout(this.sharpen);
    if (coarse) this.sharpen = window.setTimeout(() => this.draw(), stillAfter);
    if (this.listed.layout !== this.layout || this.listed.top !== this.top || this.listed.height !== this.height) {
      this.listed = { layout: this.layout, top: this.top, height: this.height };
      this.list.show(this.layout.between(this.top, this.top + this.height), this.top);
    }
    const ctx = this.ruler.getContext("2d")!;
    const ratio = this.ruler.width / this.width;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    paintRuler(ctx, this.width, this.visible, this.range, this.marks, scheme, font);
    this.offStrip.paint(this.visible, this.width, scheme, font);
    this.tell();
  }

  private label(func: number): string | undefined {
    let l = this.labels.get(func);
    if (l === undefined) {
      const n = this.names.get(func);
      if (n === undefined) return undefined;
      this.labels.set(func, (l = labelOf(n.name)));
    }
    return l;
  }

  private titleLabel(id: number): string | undefined {
    let l = this.titleLabels.get(id);
    if (l === undefined) {
      const n = this.titles?.get(id);
      if (n === undefined) return undefined;
      this.titleLabels.set(id, (l = shown(n.name, 120)));
    }
    return l;
  }

  // What tests look at.
  private tell() {
    const d = this.canvas.dataset;
    d.from = String(this.visible.from);
    d.to = String(this.visible.to);
    d.bars = String(this.painter.raster.bars);
    for (const key of ["labels", "unknown", "marked", "states", "hatched", "arrows", "spans", "ticks", "graphs", "flows", "paused", "off"] as const) d[key] = String(this.painter[key]);
    d.requests = String(this.source.requests);
    d.unsummed = this.source.answers.some((a) => a.unsummed) ? "yes" : "no";
    d.state = this.source.pending || this.coarse || !same(this.visible, this.target) ? "moving" : this.source.failure ? "failed" : "still";
  }
}
