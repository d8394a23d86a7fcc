// The strip above the timeline: the whole recording, with the visible range as a frame
// that can be dragged, resized and moved by keys.

import type { Scheme } from "./color";
import { el, fitCanvas } from "./dom";
import { duration, since } from "./format";
import type { Overview as Data } from "./types";
import { clamp, length, pan, same, zoom, type Span } from "./viewport";

const height = 44;
const grip = 6; // pixels at the frame's sides by which it is resized

export interface Shown {
  visible(): Span;
  bounds(): Span;
  range(): Span | null;
  marks(): Span[];
  show(w: Span, smoothly: boolean): void;
}

export class Overview {
  readonly canvas = el("canvas", {
    class: "overview",
    tabindex: 0,
    role: "slider",
    "aria-label": "Visible range within the whole recording. Arrows move it, plus and minus resize it.",
    "aria-valuemin": 0,
    "aria-valuemax": 100,
  });
  readonly element = el("div", { class: "overview-strip" }, this.canvas);
  private data: Data = { busy: [], gaps: [] };
  private base = el("canvas");
  private drawn: Scheme | null = null; // what base is painted in, and of what; null: it is to be painted
  private drawnOf: Span = { from: 0, to: 0 };
  private dataTo = 1; // the duration that data is of
  private width = 1;
  private frame = 0;
  private loading: AbortController | null = null;
  private drag: { mode: "move" | "left" | "right" | "new"; at: number; visible: Span } | null = null;

  constructor(
    private load: (width: number, signal: AbortSignal) => Promise<Data>,
    private scheme: () => Scheme,
    private shown: Shown,
  ) {
    new ResizeObserver(() => this.resize()).observe(this.element);
    const c = this.canvas;
    c.addEventListener("pointerdown", (e) => this.down(e));
    c.addEventListener("pointermove", (e) => this.move(e));
    c.addEventListener("pointerup", () => (this.drag = null));
    c.addEventListener("pointercancel", () => (this.drag = null));
    c.addEventListener("dblclick", () => shown.show(shown.bounds(), true));
    c.addEventListener("keydown", (e) => this.key(e));
    c.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
  }

  private resize() {
    this.width = Math.max(1, this.element.clientWidth);
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${height}px`;
    if (fitCanvas(this.canvas, this.width, height)) this.refresh();
    this.drawn = null;
    this.draw();
  }

  /** refresh asks for the data again: the width or the recording has changed. */
  refresh() {
    if (this.width <= 1) return;
    this.loading?.abort();
    const stop = (this.loading = new AbortController());
    const to = this.shown.bounds().to;
    this.load(Math.min(4000, this.width), stop.signal)
      .then((d) => {
        this.data = d;
        this.dataTo = to;
        this.drawn = null;
        this.canvas.dataset.columns = String(d.busy?.length ?? 0);
        this.draw();
      })
      .catch(() => {}); // the lanes say what is wrong
  }

  draw() {
    if (this.frame === 0) this.frame = requestAnimationFrame(() => this.paint());
  }

  private x(at: number): number {
    const b = this.shown.bounds();
    return ((at - b.from) / length(b)) * this.width;
  }

  private at(x: number): number {
    const b = this.shown.bounds();
    return b.from + (x / this.width) * length(b);
  }

  private paint() {
    this.frame = 0;
    const ctx = this.canvas.getContext("2d")!;
    const s = this.scheme();
    const ratio = this.canvas.width / this.width;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, this.width, height);
    if (this.drawn !== s || !same(this.drawnOf, this.shown.bounds())) this.paintData(s, ratio);
    ctx.drawImage(this.base, 0, 0, this.width, height);
    const range = this.shown.range();
    if (range) {
      ctx.fillStyle = s.range;
      ctx.fillRect(this.x(range.from), 0, Math.max(1, this.x(range.to) - this.x(range.from)), height);
    }
    ctx.fillStyle = s.trigger;
    for (const m of this.shown.marks()) ctx.fillRect(this.x(m.from), height - 4, Math.max(3, this.x(m.to) - this.x(m.from)), 4);
    this.paintFrame(ctx, s);
  }

  // What does not change while the visible range moves is painted once.
  private paintData(s: Scheme, ratio: number) {
    this.drawn = s;
    this.drawnOf = this.shown.bounds();
    this.base.width = this.canvas.width;
    this.base.height = this.canvas.height;
    const ctx = this.base.getContext("2d")!;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    const busy = this.data.busy ?? [];
    const first = this.data.from_ns ?? 0;
    const step = (this.dataTo - first) / Math.max(1, busy.length);
    const most = busy.reduce((m, b) => Math.max(m, b), 1e-9);
    ctx.fillStyle = s.busy;
    for (let x = 0; x < this.width; x += 1 / ratio) {
      let b = 0;
      const [at, next] = [this.at(x) - first, this.at(x + 1 / ratio) - first];
      const end = next < 0 ? 0 : Math.min(busy.length, Math.max(Math.ceil(next / step), 1));
      for (let i = Math.max(0, Math.floor(at / step)); i < end; i++) b = Math.max(b, busy[i]);
      // What is there at all can be seen.
      const h = b > 0 ? Math.max(1.5, (b / most) * (height - 8)) : 0;
      ctx.fillRect(x, height - h, 1 / ratio, h);
    }
    // What was lost goes through from top to bottom, and has a head by which it is found.
    ctx.fillStyle = s.gapText[1];
    for (const [from, to] of this.data.gaps ?? []) {
      const [x, wide] = [this.x(from), this.x(to) - this.x(from)];
      // What is missing from a dump may be a thread's in most of the window: what the others have must still be seen.
      ctx.globalAlpha = wide > this.width / 20 ? 0.15 : 0.45;
      ctx.fillRect(x, 0, Math.max(1.5, wide), height);
      ctx.globalAlpha = 1;
      ctx.fillRect(x - 1, 0, Math.max(3.5, wide + 2), 7);
    }
  }

  private paintFrame(ctx: CanvasRenderingContext2D, s: Scheme) {
    const w = this.shown.visible();
    let x0 = this.x(w.from);
    let x1 = this.x(w.to);
    if (x1 - x0 < 4) [x0, x1] = [(x0 + x1) / 2 - 2, (x0 + x1) / 2 + 2];
    ctx.fillStyle = s.veil;
    ctx.fillRect(0, 0, x0, height);
    ctx.fillRect(x1, 0, this.width - x1, height);
    ctx.strokeStyle = s.accent;
    ctx.lineWidth = 1.5;
    ctx.strokeRect(Math.max(0.75, x0), 0.75, Math.min(this.width - 0.75, x1) - Math.max(0.75, x0), height - 1.5);
    ctx.fillStyle = s.accent;
    for (const x of [x0, x1]) {
      ctx.beginPath();
      ctx.roundRect(Math.max(0, Math.min(this.width - 4, x - 2)), height / 2 - 8, 4, 16, 2);
      ctx.fill();
    }
    const c = this.canvas;
    c.setAttribute("aria-valuenow", ((100 * (w.from + w.to)) / 2 / Math.max(1, this.shown.bounds().to)).toFixed(3));
    c.setAttribute("aria-valuetext", `${duration(since(w.from))} to ${duration(since(w.to))}`);
  }

  private mode(x: number): "move" | "left" | "right" | "new" {
    const w = this.shown.visible();
    const [x0, x1] = [this.x(w.from), this.x(w.to)];
    if (x1 - x0 < 3 * grip) return x > x0 - 12 && x < x1 + 12 ? "move" : "new";
    if (Math.abs(x - x0) <= grip) return "left";
    if (Math.abs(x - x1) <= grip) return "right";
    return x > x0 && x < x1 && x1 - x0 < this.width - 4 ? "move" : "new";
  }

  private down(e: PointerEvent) {
    if (e.button !== 0) return;
    this.canvas.setPointerCapture(e.pointerId);
    const w = this.shown.visible();
    this.drag = { mode: this.mode(e.offsetX), at: this.at(e.offsetX), visible: w };
  }

  private move(e: PointerEvent) {
    const d = this.drag;
    if (!d) {
      const mode = this.mode(e.offsetX);
      this.canvas.style.cursor = mode === "move" ? "grab" : mode === "new" ? "crosshair" : "ew-resize";
      return;
    }
    const at = this.at(Math.max(0, Math.min(this.width, e.offsetX)));
    const bounds = this.shown.bounds();
    if (d.mode === "move") this.shown.show(pan(d.visible, at - d.at, bounds), false);
    else {
      const fixed = d.mode === "left" ? d.visible.to : d.mode === "right" ? d.visible.from : d.at;
      if (Math.abs(this.x(at) - this.x(fixed)) < 2) return;
      this.shown.show(clamp({ from: Math.min(at, fixed), to: Math.max(at, fixed) }, bounds), false);
    }
  }

  private key(e: KeyboardEvent) {
    const w = this.shown.visible();
    const b = this.shown.bounds();
    const by: Record<string, () => Span> = {
      ArrowLeft: () => pan(w, -length(w) / 4, b),
      ArrowRight: () => pan(w, length(w) / 4, b),
      "+": () => zoom(w, (w.from + w.to) / 2, 0.7, b),
      "-": () => zoom(w, (w.from + w.to) / 2, 1 / 0.7, b),
    };
    const move = by[e.key];
    if (!move || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    e.stopPropagation();
    this.shown.show(move(), true);
  }

  private wheel(e: WheelEvent) {
    e.preventDefault();
    this.shown.show(zoom(this.shown.visible(), this.at(e.offsetX), Math.exp(e.deltaY * 0.0025), this.shown.bounds()), true);
  }
}
