// The tooltip of the lanes.

import { el } from "./dom";

const restsAfter = 90; // ms

export class Tip {
  readonly element = el("div", { class: "tip", role: "tooltip", hidden: true });
  private resting = 0;
  private asking: AbortController | null = null;

  constructor(private size: () => { width: number; height: number }) {}

  /** show puts lines beside a point, the first of them as a title; without any there is no tip. */
  show(lines: string[], x: number, y: number) {
    const { element } = this;
    element.hidden = lines.length === 0;
    element.replaceChildren(...lines.map((l, i) => el("div", { class: i === 0 ? "tip-title" : "" }, l)));
    if (lines.length === 0) return;
    const [w, h] = [element.offsetWidth, element.offsetHeight];
    const { width, height } = this.size();
    const left = x + 14 + w > width ? Math.max(0, x - w - 10) : x + 14;
    const top = y + 18 + h > height ? Math.max(0, y - h - 8) : y + 18;
    element.style.transform = `translate(${left}px, ${top}px)`;
  }

  /** rest gives up what is asked for. */
  rest() {
    clearTimeout(this.resting);
    this.asking?.abort();
  }

  /** ask asks for better lines when the pointer rests; without an answer those that are there stay. */
  ask(request: (signal: AbortSignal) => Promise<string[] | null>, x: number, y: number) {
    this.resting = window.setTimeout(() => {
      const stop = (this.asking = new AbortController());
      request(stop.signal)
        .then((lines) => !stop.signal.aborted && lines && !this.element.hidden && this.show(lines, x, y))
        .catch(() => {});
    }, restsAfter);
  }
}
