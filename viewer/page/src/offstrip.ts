// The strip above the lanes that says how many functions were off, and when what is looked for was.

import { css, type Scheme } from "./color";
import { el, fitCanvas, replace } from "./dom";
import { plural } from "./format";
import { shown } from "./names";
import { OffList } from "./offlist";
import { runAt, type OffSource } from "./offsource";
import type { Api } from "./api";
import type { OffRun } from "./types";
import { length, type Span } from "./viewport";

const row = 16; // CSS pixels

export class OffStrip {
  readonly canvas = el("canvas", {
    class: "off-strip",
    tabindex: 0,
    role: "button",
    hidden: true,
    "aria-label": "Functions that were off, whose calls were not recorded then. Enter lists those of what is shown.",
  });
  private count = el("button", { class: "link", title: "O: list the functions that were off in what is shown" }, "Functions off");
  private looked = el("span", { class: "name" });
  readonly names = el("div", { class: "off-names", hidden: true }, this.count, this.looked);
  private list: OffList;
  private visible: Span = { from: 0, to: 1 };
  private width = 1;

  constructor(
    api: Api,
    private source: OffSource,
    find: (name: string) => void,
  ) {
    this.list = new OffList(api, find);
    this.names.append(this.list.element);
    this.count.addEventListener("click", () => this.open());
    this.canvas.addEventListener("click", (e) => this.openAt(e.offsetX));
    this.canvas.addEventListener("pointermove", (e) => (this.canvas.title = this.told(e.offsetX)));
    this.canvas.addEventListener("keydown", (e) => {
      if (e.key !== "Enter" && e.key !== " ") return;
      e.preventDefault();
      e.stopPropagation();
      this.open();
    });
  }

  /** open lists what was off in a range. */
  open(range: Span = this.visible) {
    if (this.canvas.hidden) return;
    const r = this.canvas.getBoundingClientRect();
    this.list.show({ from: Math.max(0, Math.floor(range.from)), to: Math.ceil(range.to) }, r.left, r.bottom);
  }

  private openAt(x: number) {
    const r = this.canvas.getBoundingClientRect();
    const scale = length(this.visible) / this.width;
    const at = this.visible.from + x * scale;
    const from = Math.max(0, Math.floor(at - scale));
    // A stretch that is narrower than a pixel is within it; else the instant is meant.
    const narrow = this.source.view?.runs.some(([a, b]) => b - a < 2 * scale && b >= from && a <= at + scale) ?? false;
    this.list.show(narrow ? { from, to: Math.ceil(at + scale) } : { from: Math.max(0, Math.floor(at)), to: Math.max(0, Math.floor(at)) }, r.left + x, r.bottom);
  }

  private told(x: number): string {
    const at = this.visible.from + (x / this.width) * length(this.visible);
    const run = runAt(this.source.view?.runs ?? [], at);
    return run ? `${plural(run[2], "function")} off here: their calls were not recorded` : "no function was off here";
  }

  /** paint shows what is known of the visible range. */
  paint(visible: Span, width: number, s: Scheme, font: string) {
    this.visible = visible;
    this.width = width;
    const view = this.source.view;
    const { found } = this.source;
    this.canvas.hidden = this.names.hidden = view === null;
    if (!view) return;
    const rows = this.source.looksFor ? 2 : 1;
    const height = row * rows;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    fitCanvas(this.canvas, width, height);
    const looked = rows > 1 ? (view.name !== undefined ? shown(view.name, 60) : `${plural(view.found ?? 0, "function")} found`) : "";
    if (this.looked.textContent !== looked) replace(this.looked, looked);
    const ctx = this.canvas.getContext("2d")!;
    const ratio = this.canvas.width / width;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, width, height);
    ctx.font = `11px ${font}`;
    ctx.textBaseline = "middle";
    const drawn = this.runs(ctx, view.runs, 0, s, (n) => 0.25 + (0.75 * n) / Math.max(1, view.most), (n) => [`${plural(n, "function")} off`, String(n)]);
    const lower = rows > 1 ? this.runs(ctx, found, row, s, () => 1, (n) => (view.name !== undefined ? ["off: not recorded", "off"] : [`${n} of them off`, String(n)])) : 0;
    const d = this.canvas.dataset;
    d.runs = String(drawn);
    d.found = String(lower);
    d.requests = String(this.source.requests);
  }

  // Stretches are hatched, the stronger the more functions were off; those with room say how many.
  private runs(ctx: CanvasRenderingContext2D, runs: OffRun[], y: number, s: Scheme, strength: (n: number) => number, texts: (n: number) => string[]): number {
    const scale = this.width / length(this.visible);
    const [paper, stripe] = s.off;
    const height = row - 3;
    const boxes: [x0: number, x1: number, n: number][] = [];
    ctx.fillStyle = css(paper);
    for (const [from, to, n] of runs) {
      if (to < this.visible.from || from > this.visible.to) continue;
      const x0 = Math.max(0, (from - this.visible.from) * scale);
      const x1 = Math.max(x0 + 1.5, Math.min(this.width, (to - this.visible.from) * scale));
      boxes.push([x0, x1, n]);
      ctx.globalAlpha = strength(n);
      ctx.fillRect(x0, y + 1, x1 - x0, height);
    }
    ctx.globalAlpha = 1;
    if (boxes.length === 0) return 0;
    ctx.save();
    ctx.beginPath();
    for (const [x0, x1] of boxes) ctx.rect(x0, y + 1, x1 - x0, height);
    ctx.clip();
    ctx.strokeStyle = css(stripe);
    ctx.globalAlpha = 0.55;
    ctx.beginPath();
    for (let x = -height; x < this.width; x += 7) {
      ctx.moveTo(x, y + 1 + height);
      ctx.lineTo(x + height, y + 1);
    }
    ctx.stroke();
    ctx.globalAlpha = 1;
    ctx.restore();
    this.edges(ctx, boxes, y, height, s);
    for (const [x0, x1, n] of boxes) {
      if (x1 - x0 < 14) continue;
      const text = texts(n).find((t) => ctx.measureText(t).width + 10 < x1 - x0);
      if (!text) continue;
      const w = ctx.measureText(text).width;
      const x = (x0 + x1 - w) / 2;
      ctx.fillStyle = s.offText[0];
      ctx.fillRect(x - 3, y + 1, w + 6, height);
      ctx.fillStyle = s.offText[1];
      ctx.fillText(text, x, y + 1 + height / 2 + 0.5);
    }
    return boxes.length;
  }

  // Where the number changes there is a line.
  private edges(ctx: CanvasRenderingContext2D, boxes: [number, number, number][], y: number, height: number, s: Scheme) {
    ctx.fillStyle = css(s.off[1]);
    let last = -Infinity;
    for (const [x0, x1] of boxes) {
      for (const x of [x0, x1]) {
        if (x <= 0 || x >= this.width || x - last < 3) continue;
        ctx.fillRect(x - 0.5, y + 1, 1, height);
        last = x;
      }
    }
  }
}
