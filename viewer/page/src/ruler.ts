// The time ruler above the lanes, which stays where it is.

import type { Scheme } from "./color";
import type { Mark } from "./dump";
import { duration, instant, niceStep, since } from "./format";
import { length, type Span } from "./viewport";

export const rulerHeight = 34;

/** ticks are the instants of the ruler's marks for a width in CSS pixels. */
export function ticks(w: Span, width: number): { step: number; at: number[] } {
  const step = niceStep((length(w) / width) * 110);
  const at: number[] = [];
  for (let k = Math.ceil(w.from / step); k * step <= w.to; k++) at.push(k * step);
  return { step, at };
}

/** paintRuler draws times; deep in a long recording they are counted from a base that stands at the left. */
export function paintRuler(ctx: CanvasRenderingContext2D, width: number, visible: Span, range: Span | null, marks: Mark[], s: Scheme, font: string) {
  ctx.clearRect(0, 0, width, rulerHeight);
  const x = (at: number) => ((at - visible.from) / length(visible)) * width;
  const w = { from: since(visible.from), to: since(visible.to) };
  const xOf = (t: number) => ((t - w.from) / length(w)) * width;
  const { step, at } = ticks(w, width);
  const relative = step * 2000 < w.from;
  const base = relative ? Math.floor(w.from / (step * 100)) * step * 100 : 0;
  ctx.textBaseline = "middle";
  ctx.font = `11px ${font}`;
  let left = 0;
  if (relative) {
    const text = instant(base, step * 100);
    ctx.fillStyle = s.strong;
    ctx.fillText(text, 6, 9);
    left = ctx.measureText(text).width + 14;
  }
  ctx.strokeStyle = s.faint;
  ctx.globalAlpha = 0.5;
  ctx.beginPath();
  for (const t of at) {
    line(ctx, xOf(t), rulerHeight - 8, rulerHeight);
    for (let i = 1; i < 5; i++) line(ctx, xOf(t + (step * i) / 5), rulerHeight - 4, rulerHeight);
  }
  ctx.stroke();
  ctx.globalAlpha = 1;
  ctx.fillStyle = s.faint;
  for (const t of at) {
    const text = relative ? `+${duration(t - base)}` : instant(t, step);
    ctx.fillText(text, xOf(t) + 4, rulerHeight - 10);
  }
  if (range) paintRange(ctx, x(range.from), x(range.to), duration(length(range)), width, left, s);
  // The one that is looked at comes last, and has the words.
  for (const m of [...marks.filter((m) => !m.current), ...marks.filter((m) => m.current)]) paintMark(ctx, x(m.from), x(m.to), m, width, range ? 0 : left, s);
}

// A mark is a bar at the ruler's foot with a flag at its beginning.
function paintMark(ctx: CanvasRenderingContext2D, x0: number, x1: number, m: Mark, width: number, left: number, s: Scheme) {
  if (x1 < 0 || x0 > width) return;
  ctx.fillStyle = s.trigger;
  const from = Math.max(0, x0);
  ctx.fillRect(from, rulerHeight - 5, Math.max(3, Math.min(width, x1) - from), 5);
  if (!m.current) {
    ctx.fillRect(from, rulerHeight - 12, 1.5, 12);
    return;
  }
  ctx.font = ctx.font.replace(/^(600 )?11px/, "600 11px");
  const text = cutTo(ctx, m.text, width / 2);
  const w = ctx.measureText(text).width + 12;
  const at = Math.max(left, Math.min(width - w - 2, (from + Math.min(x1, width)) / 2 - w / 2));
  ctx.beginPath();
  ctx.roundRect(at, 2, w, 15, 4);
  ctx.fill();
  ctx.fillStyle = s.dark ? "#10141a" : "#ffffff";
  ctx.fillText(text, at + 6, 10);
}

function cutTo(ctx: CanvasRenderingContext2D, text: string, space: number): string {
  while (text.length > 4 && ctx.measureText(text).width > space) text = text.slice(0, Math.floor(text.length * 0.8)) + "…";
  return text;
}

function line(ctx: CanvasRenderingContext2D, x: number, y0: number, y1: number) {
  const at = Math.round(x) + 0.5;
  ctx.moveTo(at, y0);
  ctx.lineTo(at, y1);
}

function paintRange(ctx: CanvasRenderingContext2D, x0: number, x1: number, text: string, width: number, left: number, s: Scheme) {
  if (x1 < 0 || x0 > width) return;
  ctx.fillStyle = s.range;
  ctx.fillRect(x0, 0, Math.max(1, x1 - x0), rulerHeight);
  ctx.font = ctx.font.replace("11px", "600 11px");
  const w = ctx.measureText(text).width + 12;
  const middle = (Math.max(x0, 0) + Math.min(x1, width)) / 2;
  const at = Math.max(left, Math.min(width - w - 2, middle - w / 2));
  ctx.fillStyle = s.accent;
  ctx.beginPath();
  ctx.roundRect(at, 2, w, 15, 4);
  ctx.fill();
  ctx.fillStyle = s.dark ? "#10141a" : "#ffffff";
  ctx.fillText(text, at + 6, 10);
}
