// The list of functions that were off in a range or at an instant.

import type { Api } from "./api";
import { el, replace } from "./dom";
import { count, duration, plural, since } from "./format";
import { shown } from "./names";
import type { OffFunction, Offs } from "./types";
import type { Span } from "./viewport";

const most = 200; // functions that are listed

export class OffList {
  readonly element = el("div", { class: "off-list", popover: "auto", role: "dialog", "aria-label": "Functions that were off" });
  private stop: AbortController | null = null;

  constructor(
    private api: Api,
    private find: (name: string) => void,
  ) {
    // Esc closes the list alone.
    this.element.addEventListener("keydown", (e) => {
      if (e.key !== "Escape") return;
      e.stopPropagation();
      e.preventDefault();
      this.element.hidePopover();
    });
  }

  /** show lists what was off in a span, beside a point of the window. */
  show(span: Span, x: number, y: number) {
    this.stop?.abort();
    const stop = (this.stop = new AbortController());
    const { element } = this;
    replace(element, el("p", { class: "quiet" }, "…"));
    element.dataset.state = "loading";
    element.showPopover();
    const place = () => {
      element.style.left = `${Math.max(4, Math.min(x, window.innerWidth - element.offsetWidth - 8))}px`;
      element.style.top = `${y + 2}px`;
      element.style.maxHeight = `${Math.max(120, window.innerHeight - y - 12)}px`;
    };
    place();
    this.api
      .json<Offs | null>("offs", { from: span.from, to: span.to, whole: 1, limit: most }, stop.signal)
      .then((off) => {
        this.fill(span, off);
        place();
      })
      .catch((err) => stop.signal.aborted || replace(element, el("p", { class: "failure", role: "alert" }, String((err as Error).message))))
      .finally(() => (element.dataset.state = "still"));
  }

  private fill(span: Span, off: Offs | null) {
    const where = span.from === span.to ? `at ${duration(since(span.from))}` : `between ${duration(since(span.from))} and ${duration(since(span.to))}`;
    const close = el("button", { class: "close", "aria-label": "Close", onclick: () => this.element.hidePopover() }, "✕");
    const n = off?.functions ?? 0;
    replace(
      this.element,
      el("header", {}, el("strong", {}, `${plural(n, "function")} off ${where}`), close),
      n > 0 && el("p", { class: "quiet" }, "Their calls were not recorded then, for what that costs; their time counts as their callers’."),
      off && el("ul", {}, ...off.longest.map((f) => this.line(f)), n > off.longest.length && el("li", { class: "quiet" }, `and ${count(n - off.longest.length)} more`)),
    );
    this.element.querySelector<HTMLElement>("ul button")?.focus({ preventScroll: true });
  }

  private line(f: OffFunction): HTMLElement {
    const name = el(
      "button",
      {
        class: "link name",
        title: `${shown(f.name, 2000)}\nfind it: the timeline is hatched where it was off`,
        onclick: () => {
          this.element.hidePopover();
          this.find(f.name);
        },
      },
      shown(f.name, 100),
    );
    return el("li", {}, name, el("span", { class: "module" }, shown(f.module, 40)), el("div", { class: "quiet" }, offText(f)));
  }
}

/** offText says when a function was off, and how many calls it had then as far as that is known. */
export function offText(f: OffFunction): string {
  const about = f.estimated_calls ? `, about ${plural(f.estimated_calls, "call")}` : "";
  if (f.from_ns === undefined && f.to_ns === undefined) return `off for ${duration(f.off_ns)}${about}`;
  const times = (f.times ?? 1) > 1 ? `${count(f.times!)} times ` : "";
  return `off ${times}from ${duration(since(f.from_ns ?? 0))} to ${duration(since(f.to_ns ?? 0))}, for ${duration(f.off_ns)}${about}`;
}
