// What is known of a selected span, instant or counter's value.

import { el, replace, type Child } from "./dom";
import { count, duration, percent, plural, since } from "./format";
import { shown } from "./names";
import { value } from "./said";
import type { Flow, Mark } from "./types";

export interface ItemActions {
  fit(): void;
  measure(): void;
  find(name: string): void;
  next(direction: 1 | -1): void;
  flow(f: Flow, end: "from" | "to"): void;
  laneTitle(lane: number): string;
}

const kinds = { span: "Span", async: "Asynchronous span", instant: "Instant", value: "Counter" };

/** showItem fills the element. */
export function showItem(into: HTMLElement, m: Mark, act: ItemActions) {
  const row = (title: string, ...value: Child[]) => [el("dt", {}, title), el("dd", {}, ...value)];
  const values = (list: Mark["arguments"]) => (list ?? []).flatMap((a) => row(shown(a.name, 100), el("span", { class: "name wrap", title: shown(a.type ?? "", 200) }, shown(a.value, 1000))));
  const spans = m.kind === "span" || m.kind === "async";
  const several = (m.count ?? 1) > 1;
  replace(
    into,
    el("h2", { class: "call-name name", title: shown(m.name, 4000) }, shown(m.name, 300)),
    el(
      "div",
      { class: "actions" },
      spans && el("button", { title: "double-click, or F", onclick: () => act.fit() }, "Fit"),
      spans && el("button", { title: "M: take its time as the range", onclick: () => act.measure() }, "Take as range"),
      el("button", { title: "the one before of the same title", onclick: () => act.next(-1) }, "‹ Previous"),
      el("button", { title: "the next one of the same title", onclick: () => act.next(1) }, "Next ›"),
      el("button", { title: "find all of the same title", onclick: () => act.find(m.name) }, "Find"),
    ),
    el(
      "dl",
      { class: "facts" },
      ...row("What", several ? `${plural(m.count!, "span")} for which there is no room` : kinds[m.kind]),
      ...(m.value !== undefined ? row("Value", el("strong", {}, value(m.value)), el("span", { class: "quiet" }, ` for ${duration(m.duration_ns)}`)) : []),
      ...(m.kind === "value" ? [] : values(m.arguments)),
      ...(m.results?.length ? [...row("At its end"), ...values(m.results)] : []),
      ...(spans ? row("Duration", el("strong", {}, duration(m.duration_ns)), m.unstarted || m.unfinished ? el("span", { class: "quiet" }, " at least") : null) : []),
      ...(m.among && !several ? place(m, row) : []),
      ...row("Start", duration(since(m.start_ns)), el("span", { class: "quiet" }, ` ${count(since(m.start_ns))} ns`)),
      ...row(spans || m.kind === "instant" ? "Where" : "Counter", el("span", { class: "name" }, shown(act.laneTitle(m.lane), 100))),
      ...(m.id !== undefined ? row("ID", el("span", { class: "name" }, m.id)) : []),
      ...(m.category ? row("Category", el("span", { class: "name" }, shown(m.category, 100))) : []),
      ...(m.marker ? row("Marker", el("span", { class: "name wrap" }, shown(`${m.provider ?? ""}:${m.marker}`, 200))) : []),
      ...(m.unstarted ? row("Note", "its beginning is not in the recording") : []),
      ...(m.unfinished ? row("Note", "its end is not in the recording") : []),
    ),
    ...(m.steps?.length ? [el("h3", {}, "Steps"), stepList(m)] : []),
    ...(m.flows?.length ? [el("h3", {}, "Flows"), flowList(m, act)] : []),
  );
}

// Where it is among all of its title.
function place(m: Mark, row: (title: string, ...value: Child[]) => HTMLElement[]): HTMLElement[] {
  const a = m.among!;
  if (a.complete === 0) return row("Of its title", `${plural(a.count, "span")}, none of them complete`);
  const whole = !m.unstarted && !m.unfinished;
  return [
    ...(whole ? row("Place", `longer than ${percent(a.shorter / a.complete)} of ${plural(a.complete, "span")} of its title`) : []),
    ...row("Of its title", `p50 ${duration(a.p50_ns)}, p99 ${duration(a.p99_ns)}, max ${duration(a.max_ns)}`, el("span", { class: "quiet" }, ` total ${duration(a.total_ns)}`)),
    ...row("", buckets(m)),
  ];
}

function buckets(m: Mark): HTMLElement {
  const list = m.among!.buckets;
  const most = Math.max(1, ...list.map((b) => b.calls));
  const bars = list.map((b) => {
    const bar = el("span", { class: "bar" });
    // By the logarithm, as of calls.
    bar.style.height = b.calls === 0 ? "0" : `${12 + 88 * (most > 1 ? Math.log(b.calls) / Math.log(most) : 1)}%`;
    const here = m.duration_ns >= b.from_ns && m.duration_ns < b.to_ns;
    return el("span", { class: `bucket${here ? " marked" : ""}`, title: `${duration(b.from_ns)} to ${duration(b.to_ns)}: ${plural(b.calls, "span")}` }, bar);
  });
  const box = el("div", { class: "buckets small" }, ...bars);
  box.style.maxWidth = `${list.length * 24}px`;
  return box;
}

function stepList(m: Mark): HTMLElement {
  return el(
    "ol",
    { class: "callers" },
    ...m.steps!.map((s) =>
      el("li", {}, el("span", { class: "name" }, shown(s.name || "step", 120)), el("span", { class: "quiet" }, ` after ${duration(s.at_ns - m.start_ns)} `), el("span", { class: "name" }, (s.arguments ?? []).map((a) => `${shown(a.name, 40)} = ${shown(a.value, 80)}`).join(", "))),
    ),
  );
}

function flowList(m: Mark, act: ItemActions): HTMLElement {
  return el(
    "ol",
    { class: "callers" },
    ...m.flows!.slice(0, 50).map((f) => {
      const out = f.from_lane === m.lane && f.from_ns >= m.start_ns && f.from_ns <= m.start_ns + m.duration_ns;
      const other = out ? f.to_lane : f.from_lane;
      const text = `${out ? "to" : "from"} ${other === null ? "a goroutine that isn’t shown" : shown(act.laneTitle(other), 60)}`;
      return el(
        "li",
        {},
        el("button", { class: "link", disabled: other === null, onclick: () => act.flow(f, out ? "to" : "from") }, el("span", { class: "name" }, text), el("span", { class: "quiet" }, `${duration(Math.max(0, f.to_ns - f.from_ns))} · ${f.id}`)),
      );
    }),
  );
}
