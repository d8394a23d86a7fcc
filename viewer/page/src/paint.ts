// One frame of the lanes: bars, lost stretches, labels, selection.

import { missingIn, type Mark } from "./dump";
import { paintArrows, type Arrow } from "./arrows";
import { css, shade, type Scheme, type Shade } from "./color";
import { count, duration, plural } from "./format";
import { paintFlows } from "./flows";
import { graphHeight, padding, stripHeight, type Layout, type Slot } from "./layout";
import { brief, shown } from "./names";
import { openEdges, paintGraph, paintSpans, paintTicks, scaleOf, seenOf, value, type SpanPalettes } from "./said";
import { columnsOf } from "./offsource";
import type { Dump, Flow, OffRun, Pause } from "./types";
import type { Palette } from "./palette";
import { Raster, type Label, type Piece } from "./raster";
import { paintStates, paintWaits, seenStates } from "./states";
import type { Answer, Source } from "./source";
import { TextWidths } from "./textwidth";
import { unknownIn } from "./unknown";
import { length, type Span } from "./viewport";

/** Scene is all that a frame depends on. */
export interface Scene {
  visible: Span;
  top: number; // scrolled, CSS pixels
  width: number; // CSS pixels
  height: number;
  coarse: boolean; // bars in CSS pixels, where the screen has finer ones: a quarter of the work on most
  layout: Layout;
  source: Source;
  bounds: Span;
  scheme: Scheme;
  font: string;
  name: (func: number) => string | undefined;
  palette: Palette;
  range: Span | null;
  dump: Dump | null;
  marks: Mark[]; // of its triggers
  selected: { lane: number; row: number; start: number; end: number } | null;
  hovered: { lane: number; row: number; start: number; end: number } | null;
  state: { lane: number; from: number; to: number } | null; // selected
  arrows: Arrow[];
  // What the program said:
  title: (id: number) => string | undefined;
  spans: SpanPalettes;
  item: { lane: number; row: number; start: number; end: number; kind: string } | null; // selected
  pointed: { lane: number; row: number; start: number; end: number; kind: string; value?: number } | null; // hovered
  pointer: number | null; // where it is, if it is over a counter, CSS pixels
  flows: Flow[];
  strong: Flow[]; // of what is selected
  pauses: Pause[];
  off: OffRun[]; // in which what is looked for was off
}

// Narrower bars have no text, in CSS pixels.
const labelWidth = 26;

export class Painter {
  readonly raster = new Raster();
  private fine = new Picture();
  private coarse = new Picture();
  private copied: HTMLCanvasElement | null = null; // a coarse picture, to be drawn larger
  private widths = new TextWidths(() => this.canvas.getContext("2d", { alpha: false })!);
  private spanWidths = new TextWidths(() => this.canvas.getContext("2d", { alpha: false })!);
  labels = 0; // drawn in the last frame
  unknown = 0; // stretches of rows that no answer speaks of
  marked = 0; // triggers that were drawn in their rows
  states = 0; // stretches of states
  hatched = 0; // stretches over calls in which their thread waited
  arrows = 0;
  spans = 0; // bars of them
  ticks = 0; // instants and steps
  graphs = 0; // columns of counters
  flows = 0;
  paused = 0; // pauses that are in sight
  off = 0; // stretches in sight in which what is looked for was off
  private unheard: Uint8Array | null = null; // their columns
  private spanLabels: Label[] = [];

  constructor(private canvas: HTMLCanvasElement) {}

  paint(s: Scene) {
    const { canvas } = this;
    const ctx = canvas.getContext("2d", { alpha: false })!;
    const sharp = canvas.height / s.height;
    const ratio = s.coarse ? 1 : sharp;
    const picture = s.coarse ? this.coarse.of(ctx, Math.round(s.width), Math.round(s.height)) : this.fine.of(ctx, canvas.width, canvas.height);
    const { pixels } = picture;
    const width = picture.image!.width;
    this.raster.begin(pixels, width, s.visible);
    const slots = s.layout.between(s.top, s.top + s.height);
    const end = slots.length > 0 ? slots[slots.length - 1].top + slots[slots.length - 1].height - s.top : 0;
    if (end < s.height) pixels.fill(s.scheme.below, Math.max(0, Math.round(end * ratio)) * width);
    this.unknown = this.states = this.hatched = this.spans = this.ticks = this.graphs = 0;
    this.spanLabels = [];
    this.off = s.off.reduce((n, [from, to]) => n + (to >= s.visible.from && from <= s.visible.to ? 1 : 0), 0);
    this.unheard = columnsOf(s.off, s.visible, width);
    for (const slot of slots) this.lane(s, slot, ratio);
    if (s.coarse) this.enlarge(ctx, picture.image!);
    else ctx.putImageData(picture.image!, 0, 0);
    ctx.setTransform(sharp, 0, 0, sharp, 0, 0);
    this.texts(ctx, s, ratio);
    this.edges(ctx, s);
    this.scales(ctx, s);
    this.gapTexts(ctx, s);
    this.pauseTexts(ctx, s);
    overlay(s, s.range, (x0, x1) => {
      ctx.fillStyle = s.scheme.range;
      ctx.fillRect(x0, 0, x1 - x0, s.height);
      ctx.fillStyle = s.scheme.accent;
      ctx.fillRect(x0 - 0.5, 0, 1, s.height);
      ctx.fillRect(x1 - 0.5, 0, 1, s.height);
    });
    if (s.hovered) this.outline(ctx, s, s.hovered, 1);
    if (s.selected) this.outline(ctx, s, s.selected, 2);
    this.triggers(ctx, s);
    this.stateFrame(ctx, s);
    for (const [x, width] of [[s.pointed, 1], [s.item, 2]] as const) if (x) this.saidFrame(ctx, s, x, width);
    this.flows = paintFlows(ctx, s.flows, s.strong, s.layout, s.source, s.top, s, s.visible, s.scheme);
    this.arrows = paintArrows(ctx, s.arrows, s.layout, s.top, s, s.visible, s.scheme);
    ctx.setTransform(1, 0, 0, 1, 0, 0);
  }

  private enlarge(ctx: CanvasRenderingContext2D, image: ImageData) {
    const c = (this.copied ??= document.createElement("canvas"));
    if (c.width !== image.width || c.height !== image.height) [c.width, c.height] = [image.width, image.height];
    c.getContext("2d", { alpha: false })!.putImageData(image, 0, 0);
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(c, 0, 0, this.canvas.width, this.canvas.height);
  }

  private lane(s: Scene, slot: Slot, ratio: number) {
    const y = (css: number) => Math.round((css - s.top) * ratio);
    const paper = slot.index % 2 === 1 ? s.scheme.stripe : s.scheme.ground;
    // A thread of which a dump has nothing was there, and called nothing.
    const alive = slot.lane.track ? { from: s.bounds.from, to: s.bounds.to } : s.dump ? { from: s.dump.from_ns, to: Math.max(slot.lane.end_ns, s.dump.to_ns) } : slot.lane.calls > 0 ? { from: Math.min(slot.lane.start_ns, s.bounds.to), to: slot.lane.end_ns } : { from: 0, to: 0 };
    const ground = this.raster.ground(alive, paper, s.scheme.idle);
    const rows = s.layout.rowTop(slot, 0);
    const first = Math.max(0, Math.floor((s.top - rows) / s.layout.row));
    const end = Math.min(slot.rows, Math.ceil((s.top + s.height - rows) / s.layout.row));
    const least = s.layout.row >= 12 ? labelWidth * ratio : Infinity;
    const answers = within(s.source.answers, s.visible);
    const parts = answers.map((a) => ({ span: a.span, grid: a.grid, asked: a.rows.get(slot.lane.id), rows: a.lanes.get(slot.lane.id)?.rows }));
    const life = { from: Math.max(s.visible.from, Math.min(alive.from, slot.lane.start_ns)), to: Math.min(s.visible.to, alive.to) };
    const pieces: Piece[] = [];
    const spans: Span[] = [];
    let painted = y(slot.top); // lines above are done
    const states = slot.strip > 0 ? seenStates(answers.flatMap((a) => (a.rows.has(slot.lane.id) ? [{ span: a.span, states: a.lanes.get(slot.lane.id)?.states ?? null }] : []))) : [];
    if (slot.strip > 0) {
      const top = y(s.layout.stripTop(slot));
      this.raster.fill(painted, top, ground);
      painted = y(s.layout.stripTop(slot) + stripHeight);
      this.states += paintStates(this.raster, top, painted, ground, states, s.scheme);
    }
    painted = this.said(s, slot, ratio, answers, ground, painted, y);
    for (let row = first; row < end; row++) {
      pieces.length = spans.length = 0;
      for (const { span, grid, asked, rows } of parts) {
        if (!asked || row < asked.first || row >= asked.first + asked.count) continue;
        spans.push(span);
        // What covers the visible range hides all before it.
        if (span.from <= s.visible.from && span.to >= s.visible.to) pieces.length = 0;
        const r = rows?.get(row);
        if (r) pieces.push({ span, grid, row: r });
        else if (pieces.length > 0) pieces.push({ span, grid, row: nothing });
      }
      const top = y(s.layout.rowTop(slot, row));
      let bottom = y(s.layout.rowTop(slot, row + 1));
      if (s.layout.row >= 6) bottom -= Math.max(1, Math.round(ratio * 0.75));
      this.raster.fill(painted, top, ground);
      this.raster.row(top, bottom, ground, pieces, s.palette, least);
      for (const u of unknownIn(life, spans)) {
        this.raster.unknown(top, bottom, u, s.scheme.rule);
        this.unknown++;
      }
      painted = bottom;
    }
    if (states.length > 0 && painted > y(rows)) this.hatched += paintWaits(this.raster, y(rows), painted, ground, states, s.scheme, ratio);
    this.raster.fill(painted, y(slot.top + slot.height), ground);
    if (this.unheard && !slot.lane.track) this.raster.unheard(y(slot.top), y(slot.top + slot.height), this.unheard, ground, s.scheme.unheard);
    for (const g of gapsOf(answers, slot.lane.id, s.visible)) this.raster.hatch(y(slot.top), y(slot.top + slot.height), g, ground, s.scheme.gap);
    for (const p of s.pauses) {
      if (p.pid && p.pid !== slot.lane.pid) continue;
      if (p.to_ns >= s.visible.from && p.from_ns <= s.visible.to) this.raster.hatch(y(slot.top), y(slot.top + slot.height), { from: p.from_ns, to: p.to_ns }, ground, s.scheme.said.pause);
    }
    if (slot.top > 0) this.raster.rule(y(slot.top), s.scheme.rule);
    if (slot.index === s.layout.slots.length - 1) this.raster.rule(y(slot.top + slot.height), s.scheme.rule);
  }

  // What the program said on a lane; returns up to where is painted.
  private said(s: Scene, slot: Slot, ratio: number, answers: Answer[], ground: Uint32Array, painted: number, y: (css: number) => number): number {
    const id = slot.lane.id;
    const { raster } = this;
    if (slot.graph) {
      const top = y(slot.top + padding);
      const bottom = y(slot.top + padding + graphHeight);
      raster.fill(painted, bottom, ground);
      const pieces = seenOf(answers, id, (a) => a.lanes.get(id)?.said?.graph);
      this.graphs += paintGraph(raster, top, bottom, pieces, scaleOf(slot.lane.track!), s.scheme.said.graph, ratio);
      return bottom;
    }
    if (slot.spans === 0) return painted;
    const asked = answers.filter((a) => a.rows.get(id)?.spans);
    const before = { bars: raster.bars, labels: raster.labels };
    raster.bars = 0;
    raster.labels = [];
    const least = s.layout.spanRow >= 12 ? labelWidth * ratio : Infinity;
    for (let row = 0; row < slot.spans; row++) {
      const [top, end] = [y(s.layout.spanTop(slot, row)), y(s.layout.spanTop(slot, row + 1))];
      const bottom = end - Math.max(1, Math.round(ratio));
      if (end < 0 || top >= raster.height) {
        painted = end;
        continue;
      }
      raster.fill(painted, top, ground);
      const pieces: Piece[] = asked.map((a) => ({ span: a.span, grid: a.grid, row: a.lanes.get(id)?.said?.spans.get(row) ?? nothing }));
      paintSpans(raster, top, bottom, ground, pieces, s.spans, least, ratio);
      const life = { from: s.visible.from, to: Math.min(s.visible.to, s.bounds.to) };
      for (const u of unknownIn(life, asked.map((a) => a.span))) {
        raster.unknown(top, bottom, u, s.scheme.rule);
        this.unknown++;
      }
      raster.fill(bottom, end, ground);
      const steps = seenOf(answers, id, (a) => a.lanes.get(id)?.said?.steps.get(row));
      this.ticks += paintTicks(raster, Math.round((top + bottom) / 2), bottom, steps, s.scheme.said.instant, ratio);
      painted = end;
    }
    const top = y(s.layout.spanTop(slot, 0));
    const instants = seenOf(answers, id, (a) => a.lanes.get(id)?.said?.instants);
    this.ticks += paintTicks(raster, top, y(s.layout.spanTop(slot, 1)), instants, s.scheme.said.instant, ratio);
    this.spans += raster.bars;
    this.spanLabels.push(...raster.labels);
    raster.bars = before.bars;
    raster.labels = before.labels;
    return painted;
  }

  // A span that isn't known to begin or end is open there: its edge is torn.
  private edges(ctx: CanvasRenderingContext2D, s: Scene) {
    const scale = s.width / length(s.visible);
    for (const slot of s.layout.between(s.top, s.top + s.height)) {
      const a = within(s.source.answers, s.visible).at(-1);
      const said = a?.lanes.get(slot.lane.id)?.said;
      if (!said) continue;
      for (let row = 0; row < slot.spans; row++) {
        const r = said.spans.get(row);
        const y = s.layout.spanTop(slot, row) - s.top;
        if (!r || y < -s.layout.spanRow || y > s.height) continue;
        for (const e of openEdges(r, s.visible)) {
          const x = (e.at - s.visible.from) * scale;
          if (e.width * scale < 8 || x < -4 || x > s.width + 4) continue;
          const h = s.layout.spanRow - 1;
          const tooth = Math.min(4, h / 3) * (e.left ? 1 : -1);
          ctx.fillStyle = css(s.scheme.ground);
          ctx.beginPath();
          ctx.moveTo(x - tooth, y - 0.5);
          for (let i = 0; i <= 4; i++) ctx.lineTo(x + (i % 2 === 0 ? tooth : 0), y - 0.5 + ((h + 1) * i) / 4);
          ctx.lineTo(x - tooth, y + h + 0.5);
          ctx.fill();
        }
      }
    }
  }

  // Of a counter the ends of its scale are said, and what it is at the pointer.
  private scales(ctx: CanvasRenderingContext2D, s: Scene) {
    ctx.font = `10px ${s.font}`;
    ctx.textBaseline = "middle";
    const ground = css(s.scheme.ground);
    for (const slot of s.layout.between(s.top, s.top + s.height)) {
      if (!slot.graph) continue;
      const scale = scaleOf(slot.lane.track!);
      const top = slot.top + padding - s.top;
      for (const [v, y] of [[scale.to, top + 6], [scale.from, top + graphHeight - 6]] as const) {
        const text = value(v);
        ctx.globalAlpha = 0.75;
        ctx.fillStyle = ground;
        ctx.fillRect(2, y - 6, ctx.measureText(text).width + 4, 12);
        ctx.globalAlpha = 1;
        ctx.fillStyle = s.scheme.strong;
        ctx.fillText(text, 4, y + 0.5);
      }
      if (s.pointer !== null && s.pointed?.lane === slot.lane.id && s.pointed.value !== undefined) {
        const y = top + graphHeight - 1 - ((s.pointed.value - scale.from) / (scale.to - scale.from)) * (graphHeight - 1);
        ctx.fillStyle = s.scheme.strong;
        ctx.beginPath();
        ctx.arc(s.pointer, y, 3, 0, 2 * Math.PI);
        ctx.fill();
      }
    }
  }

  private saidFrame(ctx: CanvasRenderingContext2D, s: Scene, x: { lane: number; row: number; start: number; end: number; kind: string }, width: number) {
    const slot = s.layout.byLane.get(x.lane);
    if (!slot || (!slot.graph && x.row >= slot.spans)) return;
    const y = (slot.graph ? slot.top + padding : s.layout.spanTop(slot, x.row)) - s.top;
    const h = slot.graph ? graphHeight : s.layout.spanRow - 1;
    overlay(s, { from: x.start, to: x.end }, (x0, x1) => {
      ctx.lineWidth = width;
      ctx.strokeStyle = s.scheme.strong;
      const w = Math.max(x1 - x0, 5);
      ctx.strokeRect(x0 - (w > x1 - x0 ? 2.5 : 0.5), y - 0.5, w, h + 1);
    });
  }

  private pauseTexts(ctx: CanvasRenderingContext2D, s: Scene) {
    ctx.font = `600 11px ${s.font}`;
    ctx.textBaseline = "middle";
    this.paused = 0;
    for (const p of s.pauses) {
      overlay(s, { from: p.from_ns, to: p.to_ns }, (x0, x1) => {
        this.paused++;
        const text = `paused for ${duration(p.to_ns - p.from_ns)}`;
        const w = ctx.measureText(text).width + 12;
        if (x1 - x0 < w + 4) return;
        const x = (Math.max(0, x0) + Math.min(s.width, x1)) / 2 - w / 2;
        const y = s.height / 2 - 9;
        ctx.fillStyle = s.scheme.said.pauseText[0];
        ctx.beginPath();
        ctx.roundRect(x, y, w, 18, 4);
        ctx.fill();
        ctx.fillStyle = s.scheme.said.pauseText[1];
        ctx.fillText(text, x + 6, y + 9.5);
      });
    }
  }

  private texts(ctx: CanvasRenderingContext2D, s: Scene, ratio: number) {
    const size = Math.min(12, Math.max(9, s.layout.row - 5));
    const font = `${size}px ${s.font}`;
    ctx.font = font;
    this.widths.use(font);
    ctx.textBaseline = "middle";
    ctx.direction = "ltr";
    this.labels = 0;
    const middle = (s.layout.row - 1) / 2 + 0.5;
    let style = "";
    for (const l of this.raster.labels) {
      if (l.x1 - l.x0 < labelWidth * ratio * (l.calls > 1 ? 2.5 : 1)) continue;
      const text = this.text(s, l, (l.x1 - l.x0) / ratio - 7);
      if (!text) continue;
      const want = l.match ? s.scheme.text : s.scheme.faint;
      if (want !== style) ctx.fillStyle = style = want;
      ctx.fillText(text, l.x0 / ratio + 4, l.y / ratio + middle);
      this.labels++;
    }
    const spanSize = Math.min(11, Math.max(9, s.layout.spanRow - 5));
    ctx.font = `600 ${spanSize}px ${s.font}`;
    this.spanWidths.use(ctx.font);
    for (const l of this.spanLabels) {
      if (l.x1 - l.x0 < labelWidth * ratio * (l.calls > 1 ? 2.5 : 1)) continue;
      const title = s.title(l.func);
      if (title === undefined) continue;
      const text = this.spanWidths.fitting(l.calls > 1 ? `${count(l.calls)} × ${title}` : title, (l.x1 - l.x0) / ratio - 7);
      if (!text) continue;
      ctx.fillStyle = l.match ? s.scheme.text : s.scheme.faint;
      ctx.fillText(text, l.x0 / ratio + 4, l.y / ratio + s.layout.spanRow / 2 + 0.5);
    }
  }

  private text(s: Scene, l: Label, space: number): string {
    const name = s.name(l.func);
    let text = l.func === 0 ? "" : name === undefined ? "" : name;
    if (l.calls > 1) text = text ? `${count(l.calls)} × ${text}` : plural(l.calls, "call");
    if (!text) return "";
    return this.widths.fitting(text, space);
  }

  private gapTexts(ctx: CanvasRenderingContext2D, s: Scene) {
    ctx.font = `600 11px ${s.font}`;
    ctx.textBaseline = "middle";
    const answers = within(s.source.answers, s.visible);
    for (const slot of s.layout.between(s.top, s.top + s.height)) {
      for (const g of gapsOf(answers, slot.lane.id, s.visible)) {
        overlay(s, g, (x0, x1) => {
          const text = g.events > 0 ? `${count(g.events)} lost` : missingIn(s.dump, slot.lane.id, g) ? "missing" : "lost";
          const w = ctx.measureText(text).width + 10;
          if (x1 - x0 < w + 4) return;
          const x = (x0 + x1) / 2 - w / 2;
          const y = Math.max(slot.top - s.top, 0) + 5;
          ctx.fillStyle = s.scheme.gapText[0];
          ctx.beginPath();
          ctx.roundRect(x, y, w, 16, 4);
          ctx.fill();
          ctx.fillStyle = s.scheme.gapText[1];
          ctx.fillText(text, x + 5, y + 8.5);
        });
      }
    }
  }

  // A trigger's call has a frame, and that which is looked at lines through all lanes: what happened meanwhile is between them.
  private triggers(ctx: CanvasRenderingContext2D, s: Scene) {
    this.marked = 0;
    for (const m of s.marks) {
      overlay(s, m, (x0, x1) => {
        ctx.fillStyle = ctx.strokeStyle = s.scheme.trigger;
        // An end at the screen's edge is to be seen, as most of those who made a dump end where it does.
        if (m.to <= s.visible.to) x1 = Math.min(x1, s.width - 4);
        if (m.current) {
          ctx.globalAlpha = 0.55;
          for (const x of m.to > m.from ? [x0, x1] : [x0]) for (let y = 0; y < s.height; y += 7) ctx.fillRect(x - 0.5, y, 1, 4);
          ctx.globalAlpha = 1;
        }
        const slot = m.lane === null ? undefined : s.layout.byLane.get(m.lane);
        if (!slot) return;
        const y = s.layout.rowTop(slot, Math.min(m.row ?? 0, Math.max(0, slot.rows - 1))) - s.top;
        if (y < -s.layout.row || y > s.height) return;
        this.marked++;
        const [w, h] = [Math.max(x1 - x0, 3), Math.max(3, s.layout.row)];
        const middle = y + h / 2 - 0.5;
        if (m.row !== null) {
          // Around the frame of a call that is selected.
          ctx.lineWidth = 2;
          ctx.strokeRect(x0 - 2.5, y - 2.5, w + 4, h + 3);
          if (m.open) tear(ctx, Math.min(x1 + 2, s.width), y - 2, h + 3, css(s.scheme.ground));
        }
        // What points at it is before it, or where there is no room within it.
        const tip = x0 >= 12 || m.row === null ? x0 - 4 : x0 + 14;
        ctx.beginPath();
        ctx.moveTo(tip - 9, middle - 5);
        ctx.lineTo(tip, middle);
        ctx.lineTo(tip - 9, middle + 5);
        ctx.fill();
      });
    }
  }

  private stateFrame(ctx: CanvasRenderingContext2D, s: Scene) {
    const slot = s.state && s.layout.byLane.get(s.state.lane);
    if (!s.state || !slot || slot.strip === 0) return;
    const y = s.layout.stripTop(slot) - s.top;
    overlay(s, s.state, (x0, x1) => {
      ctx.lineWidth = 2;
      ctx.strokeStyle = s.scheme.strong;
      ctx.strokeRect(x0 - 1, y - 1, Math.max(x1 - x0, 2) + 2, stripHeight + 2);
    });
  }

  private outline(ctx: CanvasRenderingContext2D, s: Scene, b: { lane: number; row: number; start: number; end: number }, width: number) {
    const slot = s.layout.byLane.get(b.lane);
    if (!slot || b.row >= slot.rows) return;
    const y = s.layout.rowTop(slot, b.row) - s.top;
    overlay(s, { from: b.start, to: b.end }, (x0, x1) => {
      ctx.lineWidth = width;
      ctx.strokeStyle = s.scheme.strong;
      const w = Math.max(x1 - x0, 3);
      ctx.strokeRect(x0 + width / 2 - 1, y - 0.5, w - width + 1, Math.max(2, s.layout.row - 0.5));
    });
  }
}

// A call that had not returned is torn off at its end.
function tear(ctx: CanvasRenderingContext2D, right: number, y: number, h: number, ground: string) {
  const [tooth, low] = [6, y + h];
  ctx.beginPath();
  ctx.moveTo(right - tooth, y);
  for (let i = 1; i <= 4; i++) ctx.lineTo(right - (i % 2 === 0 ? tooth : 0) - 1, y + (h * i) / 4);
  ctx.stroke();
  ctx.lineTo(right + 3, low + 2);
  ctx.lineTo(right + 3, y - 2);
  const style = ctx.fillStyle;
  ctx.fillStyle = ground;
  ctx.fill();
  ctx.fillStyle = style;
}

// A picture's memory, made anew when its size changes.
class Picture {
  image: ImageData | null = null;
  pixels = new Uint32Array(0);

  of(ctx: CanvasRenderingContext2D, width: number, height: number): this {
    if (this.image?.width !== width || this.image.height !== height) {
      this.image = ctx.createImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    return this;
  }
}

const empty = new Float64Array(0);
const noWords = new Uint32Array(0);
const nothing = { start: empty, duration: empty, busy: new Float32Array(0), func: noWords, calls: noWords, columns: null };

function within(answers: Answer[], w: Span): Answer[] {
  return answers.filter((a) => a.span.to > w.from && a.span.from < w.to);
}

/** Gap is a stretch in which events were lost. */
export interface Gap extends Span {
  events: number;
}

/** gapsOf are a lane's gaps: those of the finest answer, and where it doesn't cover the visible range of coarser ones too. */
export function gapsOf(answers: Answer[], lane: number, w: Span): Gap[] {
  const all: Gap[] = [];
  for (let i = answers.length - 1; i >= 0; i--) {
    const a = answers[i];
    if (!a.rows.has(lane)) continue;
    const g = a.lanes.get(lane)?.gaps;
    if (g) for (let k = 0; k < g.start.length; k++) all.push({ from: g.start[k], to: g.end[k], events: g.events[k] });
    if (a.span.from <= w.from && a.span.to >= w.to) break;
  }
  return all;
}

function overlay(s: Scene, span: Span | null, draw: (x0: number, x1: number) => void) {
  if (!span || span.to < s.visible.from || span.from > s.visible.to) return;
  const scale = s.width / length(s.visible);
  draw(Math.max(-4, (span.from - s.visible.from) * scale), Math.min(s.width + 4, (span.to - s.visible.from) * scale));
}

/** Coloring gives each function its shade, and those whose name is not known yet the unknown one. */
export interface Coloring {
  (func: number): Shade;
  unknown: Shade;
}

/** shadeOf makes the colour function of a view. */
export function shadeOf(key: (func: number) => string | undefined, scheme: Scheme): Coloring {
  const made = new Map<number, Shade>();
  const unknown = shade("", scheme);
  const color = (func: number) => {
    let c = made.get(func);
    if (!c) {
      const k = key(func);
      if (k === undefined) return unknown;
      made.set(func, (c = shade(k, scheme)));
    }
    return c;
  };
  return Object.assign(color, { unknown });
}

/** labelOf is what bars say of a function. */
export function labelOf(name: string): string {
  return name === "" ? "(no name)" : brief(name);
}

/** tooltip are the lines that tell about a bar. */
export function tooltip(name: string | undefined, module: string | undefined, bar: { calls: number; duration: number; busy: number; start: number }): string[] {
  const title = name === undefined ? "…" : shown(name, 160);
  const where = module ? shown(module, 80) : "";
  if (bar.calls > 1) {
    return [
      `${plural(bar.calls, "call")}, total ${duration(bar.busy)}`,
      `too narrow to be drawn one by one, within ${duration(bar.duration)}`,
      name === undefined ? "" : `most time: ${title}`,
      where,
    ].filter(Boolean);
  }
  return [title, `${duration(bar.duration)}`, where].filter(Boolean);
}
