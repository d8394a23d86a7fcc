// Arrows from who ended a wait to the thread that went on.

import type { Scheme } from "./color";
import { stripHeight, type Layout, type Slot } from "./layout";
import type { State } from "./types";
import { length, type Span } from "./viewport";

/** Arrow is a wake-up. */
export interface Arrow {
  from: number; // lanes
  to: number;
  at: number; // ns
}

/** arrowsOf are those of waits whose wakers are threads of the recording. */
export function arrowsOf(waits: State[]): Arrow[] {
  return waits.flatMap((x) => (x.waker && x.waker.lane !== null && x.waker.lane !== undefined && x.waker.lane !== x.lane ? [{ from: x.waker.lane, to: x.lane, at: x.to_ns }] : []));
}

/** paintArrows draws those that are in sight, and returns how many. */
export function paintArrows(ctx: CanvasRenderingContext2D, arrows: Arrow[], layout: Layout, top: number, size: { width: number; height: number }, visible: Span, s: Scheme): number {
  let drawn = 0;
  const scale = size.width / length(visible);
  // In its row of states a thread has no calls that the line could hide; one without such a row has its first.
  const middle = (slot: Slot) => (slot.strip > 0 ? layout.stripTop(slot) + stripHeight / 2 : layout.rowTop(slot, 0) + layout.row / 2) - top;
  for (const a of arrows) {
    const [from, to] = [layout.byLane.get(a.from), layout.byLane.get(a.to)];
    if (!from || !to || a.at < visible.from || a.at > visible.to) continue;
    const x = (a.at - visible.from) * scale;
    const [y0, y1] = [middle(from), middle(to)];
    if (Math.max(y0, y1) < 0 || Math.min(y0, y1) > size.height) continue;
    drawn++;
    const down = y1 > y0 ? 1 : -1;
    const tip = y1 - down * (stripHeight / 2 + 1);
    ctx.lineWidth = 4;
    ctx.strokeStyle = s.dark ? "rgba(12,14,18,0.75)" : "rgba(255,255,255,0.8)";
    line(ctx, x, y0, tip - down * 5);
    ctx.lineWidth = 1.5;
    ctx.strokeStyle = ctx.fillStyle = s.arrow;
    line(ctx, x, y0, tip - down * 5);
    ctx.beginPath();
    ctx.arc(x, y0, 3.5, 0, 2 * Math.PI);
    ctx.fill();
    ctx.beginPath();
    ctx.moveTo(x - 4.5, tip - down * 8);
    ctx.lineTo(x + 4.5, tip - down * 8);
    ctx.lineTo(x, tip);
    ctx.fill();
  }
  return drawn;
}

function line(ctx: CanvasRenderingContext2D, x: number, y0: number, y1: number) {
  ctx.beginPath();
  ctx.moveTo(x, y0);
  ctx.lineTo(x, y1);
  ctx.stroke();
}
