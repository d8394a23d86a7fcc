// Flows: arrows from where something left to where it arrived.

import type { Scheme } from "./color";
import { firstEndingAfter } from "./decode";
import type { Layout, Slot } from "./layout";
import type { Source } from "./source";
import type { Flow } from "./types";
import { length, type Span } from "./viewport";

/** binding is where an end of a flow is drawn: the middle of the innermost span that is shown there, which began last, as they may cross; else of the innermost call, else of the lane's first row. */
export function binding(layout: Layout, source: Source, slot: Slot, at: number): number {
  for (let k = source.answers.length - 1; k >= 0; k--) {
    const a = source.answers[k];
    if (a.span.from > at || a.span.to < at) continue;
    const bars = a.lanes.get(slot.lane.id);
    // When what is there in a row began, -1 for nothing.
    const begun = (row: { start: Float64Array; duration: Float64Array } | undefined) => {
      if (!row) return -1;
      const i = firstEndingAfter(row, at - 0.5);
      return i < row.start.length && row.start[i] <= at ? row.start[i] : -1;
    };
    let innermost = -1;
    let latest = -1;
    for (let row = 0; row < slot.spans; row++) {
      const start = begun(bars?.said?.spans.get(row));
      if (start >= 0 && start >= latest) [innermost, latest] = [row, start];
    }
    if (innermost >= 0) return layout.spanTop(slot, innermost) + layout.spanRow / 2;
    for (let row = slot.rows - 1; row >= 0; row--) if (begun(bars?.rows.get(row)) >= 0) return layout.rowTop(slot, row) + layout.row / 2;
    break;
  }
  return slot.spans > 0 ? layout.spanTop(slot, 0) + layout.spanRow / 2 : layout.rowTop(slot, 0) + layout.row / 2;
}

/** paintFlows draws those that have an end in sight, the strong ones on top, and returns how many. */
export function paintFlows(ctx: CanvasRenderingContext2D, flows: Flow[], strong: Flow[], layout: Layout, source: Source, top: number, size: { width: number; height: number }, visible: Span, s: Scheme): number {
  let drawn = 0;
  const scale = size.width / length(visible);
  const far = size.width + 1000;
  const one = (f: Flow, chosen: boolean) => {
    const from = f.from_lane === null ? undefined : layout.byLane.get(f.from_lane);
    const to = f.to_lane === null ? undefined : layout.byLane.get(f.to_lane);
    if (!from || !to || f.to_ns < visible.from || f.from_ns > visible.to) return;
    const x0 = Math.max(-1000, (f.from_ns - visible.from) * scale);
    const x1 = Math.min(far, (f.to_ns - visible.from) * scale);
    const y0 = binding(layout, source, from, f.from_ns) - top;
    const y1 = binding(layout, source, to, f.to_ns) - top;
    if (Math.max(y0, y1) < 0 || Math.min(y0, y1) > size.height) return;
    drawn++;
    const bend = Math.max(12, Math.min(120, Math.abs(x1 - x0) / 2));
    ctx.beginPath();
    ctx.moveTo(x0, y0);
    ctx.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - 5, y1);
    ctx.lineWidth = chosen ? 4.5 : 3;
    ctx.strokeStyle = s.dark ? "rgba(12,14,18,0.7)" : "rgba(255,255,255,0.75)";
    ctx.stroke();
    ctx.lineWidth = chosen ? 2 : 1;
    ctx.strokeStyle = ctx.fillStyle = s.said.flow;
    ctx.stroke();
    ctx.beginPath();
    ctx.moveTo(x1, y1);
    ctx.lineTo(x1 - 8, y1 - 4);
    ctx.lineTo(x1 - 8, y1 + 4);
    ctx.fill();
    ctx.beginPath();
    ctx.arc(x0, y0, chosen ? 3 : 2, 0, 2 * Math.PI);
    ctx.fill();
  };
  const chosen = new Set(strong.map(keyOf));
  ctx.globalAlpha = strong.length > 0 ? 0.45 : 0.8;
  for (const f of flows) if (!chosen.has(keyOf(f))) one(f, false);
  ctx.globalAlpha = 1;
  for (const f of strong) one(f, true);
  return drawn;
}

function keyOf(f: Flow): string {
  return `${f.title} ${f.id} ${f.from_ns} ${f.to_ns}`;
}
