// The column of lanes' names. Only those on the screen are elements.

import { el } from "./dom";
import { count, plural } from "./format";
import { number, title, type Slot } from "./layout";
import { shown } from "./names";
import { trackFacts } from "./said";

export class LaneList {
  readonly element = el("div", { class: "lane-names", role: "list", "aria-label": "Threads and goroutines" });
  marked: ReadonlySet<number> = new Set(); // lanes in which something triggered a dump
  private shown = new Map<number, { root: HTMLElement; toggle: HTMLElement; head: HTMLElement }>();

  constructor(
    private toggle: (lane: number) => void,
    private chosen: (lane: number) => void,
  ) {}

  /** show puts the names of the slots where they are; top is how far the view is scrolled. */
  show(slots: Slot[], top: number) {
    const gone = new Set(this.shown.keys());
    for (const s of slots) {
      gone.delete(s.lane.id);
      const e = this.shown.get(s.lane.id) ?? this.make(s);
      e.root.style.transform = `translateY(${s.top - top}px)`;
      e.root.style.height = `${s.height}px`;
      e.root.classList.toggle("odd", s.index % 2 === 1);
      // A name stays in sight as long as a part of its lane does.
      const down = Math.min(Math.max(0, top - s.top), Math.max(0, s.height - 40));
      e.head.style.transform = down > 0 ? `translateY(${down}px)` : "";
      e.toggle.setAttribute("aria-expanded", String(!s.collapsed));
    }
    for (const id of gone) {
      const e = this.shown.get(id)!;
      // The focus is not lost by scrolling.
      if (e.root.contains(document.activeElement)) {
        e.root.style.transform = "translateY(-10000px)";
        continue;
      }
      e.root.remove();
      this.shown.delete(id);
    }
  }

  clear() {
    this.shown.clear();
    this.element.replaceChildren();
  }

  private make(s: Slot) {
    const name = shown(title(s.lane), 80);
    const id = s.lane.id;
    const toggle = el("button", {
      class: "lane-toggle",
      "aria-expanded": "true",
      "aria-label": `rows of ${name}`,
      disabled: s.lane.rows < 2 && (s.lane.spans ?? 0) < 2,
      onclick: () => this.toggle(id),
    });
    const head = el(
      "div",
      { class: "lane-head" },
      toggle,
      el(
        "button",
        { class: "lane-name", title: `${shown(title(s.lane))}\n${facts(s)}\n${s.lane.track ? "what the program said" : "click: its flame graph, tree and functions"}`, onclick: () => !s.lane.track && this.chosen(id) },
        el("span", { class: "name" }, this.marked.has(id) && el("span", { class: "flag", role: "img", "aria-label": "triggered the dump: " }), name),
        el("span", { class: "lane-number" }, s.lane.track ? `${number(s.lane)} · ${count(s.lane.track.count)}` : s.lane.kind === "stack" ? `${number(s.lane)}, own stack · ${count(s.lane.calls)}` : `${number(s.lane)} · ${plural(s.lane.calls, "call")}`),
      ),
    );
    const root = el("div", { class: "lane", role: "listitem", "data-lane": id }, head);
    const made = { root, toggle, head };
    this.shown.set(id, made);
    this.element.append(root);
    return made;
  }
}

function facts(s: Slot): string {
  const l = s.lane;
  if (l.track) return trackFacts(l.track);
  const parts = [`process ${l.pid}`, number(l), plural(l.calls, "call"), plural(l.rows, "row")];
  if (l.dropped > 0) parts.push(`${plural(l.dropped, "event")} lost`);
  return parts.join(" · ");
}
