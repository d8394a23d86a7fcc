// The edge between lanes and panel.

import { el } from "./dom";

/** splitter sets the panel's height, by drag or keys. */
export function splitter(of: { readonly element: HTMLElement; readonly panel: HTMLElement }): HTMLElement {
  const bar = el("div", { class: "splitter", role: "separator", "aria-orientation": "horizontal", "aria-label": "Height of the panel", tabindex: 0 });
  const set = (h: number) => {
    const height = Math.max(120, Math.min(h, of.element.clientHeight - 160));
    of.panel.style.height = `${height}px`;
  };
  bar.addEventListener("pointerdown", (e) => {
    bar.setPointerCapture(e.pointerId);
    const [y, h] = [e.clientY, of.panel.offsetHeight];
    const move = (m: PointerEvent) => set(h + y - m.clientY);
    bar.addEventListener("pointermove", move);
    bar.addEventListener("pointerup", () => bar.removeEventListener("pointermove", move), { once: true });
  });
  bar.addEventListener("keydown", (e) => {
    const by = e.key === "ArrowUp" ? 24 : e.key === "ArrowDown" ? -24 : 0;
    if (by === 0) return;
    e.preventDefault();
    e.stopPropagation();
    set(of.panel.offsetHeight + by);
  });
  return bar;
}
