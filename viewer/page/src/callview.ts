// What is known of the selected call.

import { el, replace, type Child } from "./dom";
import { describe, missingIn, triggerOf } from "./dump";
import { count, duration, percent, since } from "./format";
import { shown } from "./names";
import { splitBar, splitList } from "./split";
import type { Call, Caller, Dump, FunctionName, Offs, Split } from "./types";
import type { Place } from "./urlstate";

const flagText: Record<string, string> = {
  unfinished: "unfinished: still open when its thread or the recording ended",
  implicit: "ended without returning: by an exception, longjmp, or an exit that is not recorded",
  "across-loss": "events were lost while it was open: calls inside may be missing, and its end may be another call's",
};

export interface CallActions {
  select(p: Place): void;
  fit(): void;
  find(name: string): void;
  measure(): void;
  off(off: Offs): HTMLElement; // the note of which functions were off meanwhile
  why: (() => void) | null; // null: nobody can tell
}

/** placeOf is an instant inside a call. */
export function placeOf(c: { start_ns: number; duration_ns: number; row: number }, lane: number): Place {
  return { lane, row: c.row, at: Math.floor(c.start_ns + c.duration_ns / 2) };
}

/** showCall fills the element; self is how its own time is split, which is known later than the call. */
export function showCall(into: HTMLElement, c: Call, name: FunctionName | undefined, lane: string, dump: Dump | null, self: Split | undefined, act: CallActions) {
  const trigger = triggerOf(dump, c);
  const missing = missingIn(dump, c.lane, { from: c.start_ns, to: c.start_ns + c.duration_ns });
  const full = shown(c.name, 4000);
  const row = (title: string, ...value: Child[]) => [el("dt", {}, title), el("dd", {}, ...value)];
  const callers = [...(c.callers ?? [])].reverse();
  replace(
    into,
    el("h2", { class: "call-name name", title: full }, shown(c.name, 300)),
    el(
      "div",
      { class: "actions" },
      act.why && el("button", { class: "why", title: "Y: hold it against ordinary calls of the same function", onclick: act.why }, "Why?"),
      el("button", { title: "double-click, or F", onclick: act.fit }, "Fit"),
      el("button", { title: "M: take its time as the range", onclick: act.measure }, "Take as range"),
      el("button", { title: "find its other calls", onclick: () => act.find(c.name) }, "Find calls"),
    ),
    el(
      "dl",
      { class: "facts" },
      ...(trigger ? row("Trigger", el("strong", { class: "triggered" }, `trigger: ${describe(trigger)}`)) : []),
      ...(c.arguments ?? []).flatMap((a) => row(shown(a.name, 100), el("span", { class: "name wrap", title: shown(a.type ?? "", 200) }, shown(a.value, 1000)))),
      ...row("Duration", el("strong", {}, duration(c.duration_ns))),
      ...(c.states ? row("", splitBar(c.states, c.duration_ns), splitList(c.states, c.duration_ns)) : []),
      ...row("Self", `${duration(c.self_ns)} (${percent(c.duration_ns > 0 ? c.self_ns / c.duration_ns : 1)})`),
      ...(self ? row("", splitBar(self, c.self_ns), splitList(self, c.self_ns)) : []),
      ...row("Start", duration(since(c.start_ns)), el("span", { class: "quiet" }, ` ${count(since(c.start_ns))} ns`)),
      ...row("Thread", el("span", { class: "name" }, shown(lane, 100))),
      ...row("Depth", `${c.depth}`, c.callees !== undefined ? el("span", { class: "quiet" }, `, makes ${count(c.callees)} calls`) : null),
      ...row("Image", el("span", { class: "name" }, c.module ? shown(c.module, 120) : "unknown")),
      ...(name?.file ? row("Source", el("span", { class: "name" }, shown(name.file, 200) + (name.line ? `:${name.line}` : ""))) : []),
      ...(name?.name_from ? row("Name from", shown(name.name_from, 40)) : []),
      ...(name?.linkage_name && name.linkage_name !== c.name ? row("Symbol", el("span", { class: "name wrap" }, shown(name.linkage_name, 300))) : []),
      ...(missing ? row("Note", "calls that it made are missing from the dump: its own time may be theirs") : []),
      ...(c.off ? row("Note", act.off(c.off)) : []),
      ...(c.flags ?? []).flatMap((f) => row("Note", flagText[f] ?? shown(f, 100))),
    ),
    callers.length > 0 ? el("h3", {}, `Called by`) : null,
    callers.length > 0 ? callerList(callers, c.lane, act) : null,
  );
}

function callerList(callers: Caller[], lane: number, act: CallActions): HTMLElement {
  // A recursion may be as deep as a stack allows: its ends are what tells.
  const some = callers.length > 200 ? [...callers.slice(0, 150), null, ...callers.slice(-50)] : callers;
  return el(
    "ol",
    { class: "callers" },
    ...some.map((c) =>
      c === null
        ? el("li", { class: "quiet" }, `… ${count(callers.length - 200)} more …`)
        : el(
            "li",
            {},
            el(
              "button",
              { class: "link", title: shown(c.name, 2000), onclick: () => act.select(placeOf(c, lane)) },
              el("span", { class: "name" }, shown(c.name, 120)),
              el("span", { class: "quiet" }, duration(c.duration_ns)),
            ),
          ),
    ),
  );
}
