// A dump: the last moments before something happened. What it was made for in words, and the strip that shows it.

import { el, replace } from "./dom";
import { duration, plural } from "./format";
import { shown } from "./names";
import type { Call, Dump, Trigger } from "./types";
import type { Span } from "./viewport";

/** Mark is a trigger as the lanes and the ruler show it. */
export interface Mark extends Span {
  lane: number | null;
  row: number | null;
  open: boolean; // its call had not returned
  text: string;
  current: boolean; // the one that was gone to last
}

/** condition is what made the dump, as short as can be. */
export function condition(t: Trigger): string {
  const words: Record<string, string> = { request: "asked for", stall: "stall", end: "end of the process" };
  return shown(t.condition || words[t.kind] || t.kind, 80);
}

/** took says how long a trigger's call took; nothing for one without a length. */
export function took(t: Trigger): string {
  if (t.open) return `not returned after ${duration(t.duration_ns)}`;
  return t.duration_ns > 0 ? `took ${duration(t.duration_ns)}` : "";
}

export function describe(t: Trigger): string {
  return [condition(t), took(t), t.detail ? shown(t.detail, 200) : ""].filter(Boolean).join(", ");
}

/** marks are those of all triggers that have a place. */
export function marks(d: Dump | null, current: number): Mark[] {
  return (d?.triggers ?? []).flatMap((t, i) =>
    t.start_ns > 0 || t.row !== null || t.end_ns > 0
      ? [{ from: t.start_ns, to: t.end_ns, lane: t.lane, row: t.row, open: t.open === true, text: [condition(t), took(t).replace(/^took /, "")].filter(Boolean).join("  "), current: i === current }]
      : [],
  );
}

/** triggerOf is the trigger that a call is. */
export function triggerOf(d: Dump | null, c: Call): Trigger | null {
  return d?.triggers.find((t) => t.lane === c.lane && t.row === c.row && t.start_ns === c.start_ns) ?? null;
}

/** missingIn says whether a part of a lane's stretch is missing from the dump. */
export function missingIn(d: Dump | null, lane: number, s: Span): boolean {
  return d?.missing.some((m) => (m.lane === null || m.lane === lane) && m.from_ns <= s.to && m.to_ns >= s.from) ?? false;
}

/** DumpBar is the strip above a dump's timeline. */
export class DumpBar {
  readonly element = el("div", { class: "dump-bar", role: "region", "aria-label": "What the dump was made for", hidden: true });
  constructor(private act: { go(step: 1 | -1): void; earlier(): void }) {}

  show(d: Dump | null, current: number, before: number, earlier: boolean) {
    this.element.hidden = d === null;
    if (!d) return;
    const t = d.triggers[current] as Trigger | undefined;
    const count = d.triggers.length;
    const all = d.more_triggers ? `${count} of ${count + d.more_triggers}` : `${count}`;
    replace(
      this.element,
      t && el("button", { class: "trigger", title: "G: show it", onclick: () => this.act.go(1) }, el("span", { class: "flag", "aria-hidden": "true" }), el("strong", {}, condition(t)), el("span", {}, took(t))),
      t && el("span", { class: "name" }, [t.name ? shown(t.name, 80) : "", t.tid ? `thread ${t.tid} ${shown(t.thread, 40)}` : "", t.detail ? shown(t.detail, 160) : ""].filter(Boolean).join(" · ")),
      count > 1 && el("span", { class: "steps" },
        el("button", { "aria-label": "Previous trigger", title: "Shift+G", onclick: () => this.act.go(-1) }, "‹"),
        el("span", {}, `${current + 1} / ${all}`),
        el("button", { "aria-label": "Next trigger", title: "G", onclick: () => this.act.go(1) }, "›"),
      ),
      el("span", { class: "grow" }),
      d.missing.length > 0
        ? el("span", { class: "badge warn", title: "calls of these stretches are not in the dump; they are hatched" }, `${plural(d.missing.length, "stretch").replace("stretchs", "stretches")} missing`)
        : el("span", { class: "quiet" }, "whole"),
      el("span", { class: "quiet" }, `window of ${duration(d.to_ns - d.from_ns)}`),
      before > 0 && el("button", { "aria-pressed": String(earlier), title: "B: calls that were open when the window began were entered before it", onclick: () => this.act.earlier() }, `${duration(before)} before`),
    );
  }
}
