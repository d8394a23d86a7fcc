// Pointer and wheel on the lanes and the ruler.

import type { Timeline } from "./timeline";
import type { Span } from "./viewport";

type Drag =
  | { kind: "pan"; x: number; y: number; visible: Span; top: number; moved: boolean }
  | { kind: "measure"; from: number; x: number; moved: boolean };

export class Input {
  private drag: Drag | null = null;

  constructor(private t: Timeline) {
    const { canvas, ruler, scroller } = t;
    canvas.addEventListener("pointerdown", (e) => this.down(e, canvas, e.shiftKey));
    ruler.addEventListener("pointerdown", (e) => this.down(e, ruler, true));
    for (const c of [canvas, ruler]) {
      c.addEventListener("pointermove", (e) => this.move(e, c));
      c.addEventListener("pointerup", (e) => this.up(e, c));
      c.addEventListener("pointercancel", () => (this.drag = null));
      c.addEventListener("pointerleave", () => this.leave());
    }
    canvas.addEventListener("dblclick", (e) => {
      const bar = t.barAt(e.offsetX, e.offsetY);
      const of = bar ?? t.saidAt(e.offsetX, e.offsetY);
      if (of && of.duration > 0) t.fit({ from: of.start, to: of.start + of.duration });
    });
    ruler.addEventListener("dblclick", () => t.range && t.fit(t.range));
    // Zooming must keep the page's own from happening, so it can't be passive.
    scroller.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
    ruler.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
  }

  private x(e: MouseEvent): number {
    return e.clientX - this.t.canvas.getBoundingClientRect().left;
  }

  private down(e: PointerEvent, on: HTMLElement, measure: boolean) {
    if (e.button !== 0) return;
    on.setPointerCapture(e.pointerId);
    this.t.canvas.focus({ preventScroll: true });
    const x = this.x(e);
    if (measure) this.drag = { kind: "measure", from: this.t.timeAt(x), x, moved: false };
    else this.drag = { kind: "pan", x, y: e.clientY, visible: this.t.visible, top: this.t.top, moved: false };
    e.preventDefault();
  }

  private move(e: PointerEvent, on: HTMLElement) {
    const { t, drag } = this;
    const x = this.x(e);
    t.pointerX = x;
    if (!drag) {
      if (on === t.canvas) t.hover(e.offsetX, e.offsetY);
      return;
    }
    if (!drag.moved && Math.abs(x - drag.x) < 4 && (drag.kind === "measure" || Math.abs(e.clientY - drag.y) < 4)) return;
    if (!drag.moved) t.leave();
    drag.moved = true;
    if (drag.kind === "measure") {
      this.measure(drag.from, x);
      return;
    }
    t.canvas.classList.add("panning");
    const by = ((drag.x - x) / t.size.width) * (drag.visible.to - drag.visible.from);
    t.show({ from: drag.visible.from + by, to: drag.visible.to + by }, false);
    t.top = drag.top + drag.y - e.clientY;
  }

  private measure(from: number, x: number) {
    const at = this.t.timeAt(Math.max(0, Math.min(this.t.size.width, x)));
    this.t.range = from < at ? { from, to: at } : { from: at, to: from };
    this.t.draw();
  }

  private up(e: PointerEvent, on: HTMLElement) {
    const { t, drag } = this;
    this.drag = null;
    t.canvas.classList.remove("panning");
    if (!drag) return;
    if (drag.kind === "measure") {
      if (!drag.moved) t.range = null;
      t.listener.ranged(t.range);
      t.draw();
    } else if (!drag.moved && on === t.canvas) {
      this.click(e);
    }
  }

  private click(e: PointerEvent) {
    const bar = this.t.barAt(e.offsetX, e.offsetY);
    const state = this.t.stateAt(e.offsetX, e.offsetY);
    if (state && this.t.listener.state) return this.t.listener.state(state.lane, state.at);
    const said = bar ? null : this.t.saidAt(e.offsetX, e.offsetY);
    if (said && this.t.listener.said) return this.t.listener.said(said, this.t.timeAt(e.offsetX));
    if (!bar) {
      this.t.listener.selected(null, 0);
      return;
    }
    this.t.listener.selected(bar, this.t.timeAt(e.offsetX));
  }

  private leave() {
    this.t.pointerX = null;
    this.t.leave();
  }

  private wheel(e: WheelEvent) {
    const { t } = this;
    const unit = e.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : e.deltaMode === WheelEvent.DOM_DELTA_PAGE ? t.size.height : 1;
    if (e.ctrlKey || e.metaKey) {
      e.preventDefault();
      // A pinch on a trackpad comes as small steps, a wheel's notch as about 100.
      t.zoomBy(Math.exp(Math.max(-240, Math.min(240, e.deltaY * unit)) * (Math.abs(e.deltaY) < 20 ? 0.01 : 0.0025)), this.x(e));
      return;
    }
    const dx = e.shiftKey && e.deltaX === 0 ? e.deltaY : e.deltaX;
    if (dx !== 0 && Math.abs(dx) >= Math.abs(e.shiftKey ? 0 : e.deltaY)) {
      e.preventDefault();
      t.panBy((dx * unit) / t.size.width, e.shiftKey);
    } else if (e.currentTarget === t.ruler) {
      e.preventDefault();
      t.zoomBy(Math.exp(e.deltaY * unit * 0.0025), this.x(e));
    }
  }
}
