// The flame graph, left-heavy: the root above, what took most at the left.

import type { Scheme, Shade } from "./color";
import { css } from "./color";
import { el, fitCanvas } from "./dom";
import { levels, path, type Branch } from "./forest";
import { duration, percent, plural } from "./format";
import { brief, shown } from "./names";
import { font } from "./timeline";

const row = 20;

export class Flame {
  readonly canvas = el("canvas", {
    class: "flame",
    tabindex: 0,
    role: "application",
    "aria-label": "Flame graph. Arrows go from function to function, Enter zooms, Escape zooms out.",
  });
  readonly element: HTMLElement;
  private tip = el("div", { class: "tip", role: "tooltip", hidden: true });
  private status = el("div", { class: "flame-status", "aria-live": "polite" });
  private scroller: HTMLElement;
  private levels: Branch[][] = [];
  private root: Branch | null = null;
  private zoomed: Branch | null = null;
  private current: Branch | null = null;
  private from = 0; // what is shown, ns
  private to = 1;
  private frame = 0;
  private last = 0;
  private width = 1;
  match: ReadonlySet<number> | null = null;

  constructor(
    private scheme: () => Scheme,
    private color: (func: number) => Shade,
    private chosen: (b: Branch) => void,
  ) {
    this.scroller = el("div", { class: "flame-scroll" }, this.canvas, this.tip);
    this.element = el("div", { class: "flame-box" }, this.status, this.scroller);
    new ResizeObserver(() => this.draw()).observe(this.scroller);
    const c = this.canvas;
    c.addEventListener("pointermove", (e) => this.hover(e));
    c.addEventListener("pointerleave", () => (this.tip.hidden = true));
    c.addEventListener("click", (e) => this.click(this.at(e.offsetX, e.offsetY)));
    c.addEventListener("keydown", (e) => this.key(e));
  }

  show(root: Branch) {
    this.root = root;
    this.levels = levels(root);
    this.zoomed = this.current = null;
    this.from = 0;
    this.to = Math.max(1, root.total);
    this.tell(root);
    this.draw();
  }

  draw() {
    if (this.frame === 0) this.frame = requestAnimationFrame((t) => this.tick(t));
  }

  private tick(now: number) {
    this.frame = 0;
    if (!this.root || this.scroller.clientHeight === 0) return;
    const target = this.zoomed ?? this.root;
    const [from, to] = [target.from, target.from + Math.max(1, target.total)];
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const k = still ? 1 : 1 - Math.exp(-Math.min(50, this.last ? now - this.last : 16) / 60);
    this.from += (from - this.from) * k;
    this.to += (to - this.to) * k;
    const near = (to - from) / 2000;
    const moving = Math.abs(this.from - from) > near || Math.abs(this.to - to) > near;
    if (!moving) [this.from, this.to] = [from, to];
    this.last = moving ? now : 0;
    this.paint();
    if (moving) this.draw();
  }

  private paint() {
    this.width = Math.max(1, this.scroller.clientWidth);
    // A canvas can't be arbitrarily high: what is deeper is in the call tree.
    const height = Math.min(12000, Math.max(this.scroller.clientHeight - 2, this.levels.length * row + 4));
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${height}px`;
    fitCanvas(this.canvas, this.width, height);
    const ctx = this.canvas.getContext("2d")!;
    const ratio = this.canvas.width / this.width;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    const s = this.scheme();
    ctx.fillStyle = css(s.ground);
    ctx.fillRect(0, 0, this.width, height);
    ctx.font = `11.5px ${font}`;
    ctx.textBaseline = "middle";
    let drawn = 0;
    this.levels.forEach((level, depth) => {
      for (const b of level) drawn += this.bar(ctx, b, depth, s) ? 1 : 0;
    });
    if (this.current) this.outline(ctx, this.current, s);
    this.canvas.dataset.bars = String(drawn);
    this.canvas.dataset.state = this.last === 0 ? "still" : "moving";
  }

  private x(at: number): number {
    return ((at - this.from) / (this.to - this.from)) * this.width;
  }

  private bar(ctx: CanvasRenderingContext2D, b: Branch, depth: number, s: Scheme): boolean {
    const x0 = Math.max(0, this.x(b.from));
    const x1 = Math.min(this.width, this.x(b.from + b.total));
    if (x1 - x0 < 0.4) return false;
    const shade = this.color(b.func);
    const hit = this.match === null || this.match.has(b.func);
    const above = this.zoomed !== null && depth < this.zoomed.depth;
    ctx.fillStyle = css(hit && !above ? shade.full : shade.dim);
    ctx.fillRect(x0, depth * row, Math.max(0.5, x1 - x0 - (x1 - x0 > 2 ? 1 : 0)), row - 1);
    if (x1 - x0 > 28) {
      ctx.fillStyle = hit && !above ? s.text : s.faint;
      const text = `${labelFor(b)} · ${duration(b.total)}`;
      ctx.fillText(fit(ctx, text, x1 - x0 - 8), x0 + 4, depth * row + row / 2);
    }
    return true;
  }

  private outline(ctx: CanvasRenderingContext2D, b: Branch, s: Scheme) {
    const x0 = this.x(b.from);
    ctx.strokeStyle = s.strong;
    ctx.lineWidth = 2;
    ctx.strokeRect(x0, b.depth * row, Math.max(3, this.x(b.from + b.total) - x0 - 1), row - 1);
  }

  private at(x: number, y: number): Branch | null {
    const time = this.from + (x / this.width) * (this.to - this.from);
    return this.levels[Math.floor(y / row)]?.find((b) => b.from <= time && time < b.from + b.total) ?? null;
  }

  private hover(e: PointerEvent) {
    const b = this.at(e.offsetX, e.offsetY);
    this.tip.hidden = b === null;
    if (!b || !this.root) return;
    this.tip.replaceChildren(...describe(b, this.root).map((l, i) => el("div", { class: i === 0 ? "tip-title" : "" }, l)));
    const x = Math.min(e.offsetX + 14, Math.max(0, this.width - this.tip.offsetWidth - 4));
    this.tip.style.transform = `translate(${x}px, ${e.offsetY + 18}px)`;
  }

  private click(b: Branch | null) {
    if (!b) return;
    this.current = b;
    this.zoomed = b === this.zoomed ? b.parent : b;
    this.tell(b);
    this.draw();
    if (b.func !== 0) this.chosen(b);
  }

  private tell(b: Branch) {
    const root = this.root!;
    const trail = path(b).map((p, i) => {
      const button = el("button", { class: "crumb", onclick: () => this.click(p) }, labelFor(p));
      return i === 0 ? button : el("span", {}, " › ", button);
    });
    this.status.replaceChildren(
      el("strong", {}, `${duration(b.total)} · ${percent(b.total / Math.max(1, root.total))} · ${plural(b.calls, "call")} `),
      ...(trail.length > 12 ? [...trail.slice(0, 3), " › … ", ...trail.slice(-8)] : trail),
    );
  }

  private key(e: KeyboardEvent) {
    if (e.ctrlKey || e.metaKey || e.altKey || !this.root) return;
    const b = this.current ?? this.root;
    const siblings = b.parent?.children ?? [b];
    const i = siblings.indexOf(b);
    const to: Record<string, Branch | null | undefined> = {
      ArrowDown: b.children[0],
      ArrowUp: b.parent,
      ArrowLeft: siblings[i - 1],
      ArrowRight: siblings[i + 1],
    };
    if (e.key === "Enter") this.click(b);
    else if (e.key === "Escape") {
      this.zoomed = null;
      this.draw();
    } else if (e.key in to) {
      const next = to[e.key];
      if (next) {
        this.current = next;
        this.tell(next);
        this.scrollTo(next);
        this.draw();
      }
    } else return;
    e.preventDefault();
    e.stopPropagation();
  }

  private scrollTo(b: Branch) {
    const y = b.depth * row;
    const s = this.scroller;
    if (y < s.scrollTop) s.scrollTop = y;
    else if (y + row > s.scrollTop + s.clientHeight) s.scrollTop = y + row - s.clientHeight;
  }
}

function labelFor(b: Branch): string {
  return b.name === "" ? "(no name)" : brief(b.name);
}

function describe(b: Branch, root: Branch): string[] {
  return [
    shown(b.name, 160),
    `${duration(b.total)} in ${plural(b.calls, "call")}, ${percent(b.total / Math.max(1, root.total))} of what is shown`,
    `self ${duration(b.self)}`,
  ];
}

function fit(ctx: CanvasRenderingContext2D, text: string, space: number): string {
  const width = ctx.measureText(text).width;
  if (width <= space) return text;
  const keep = Math.floor((text.length * space) / width) - 1;
  return keep < 2 ? "" : text.slice(0, keep) + "…";
}
