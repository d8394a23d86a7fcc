// How a time is split by what threads did: as words, as a bar, and the switch by which tables and graphs are made of one state.

import { el, type Child } from "./dom";
import { duration, percent } from "./format";
import type { By, Split } from "./types";

const words: [keyof Split, string][] = [
  ["cpu_ns", "cpu"],
  ["ready_ns", "ready"],
  ["blocked_ns", "blocked"],
];

/** parts are the shares of a time by state, what isn't known last. */
function parts(s: Split, whole: number): [string, number][] {
  const known = s.cpu_ns + s.ready_ns + s.blocked_ns;
  // Rounding may leave some nanoseconds, which are nobody's.
  const unknown = whole - known > Math.max(2, whole * 1e-6) ? whole - known : 0;
  return [...words.map(([k, w]) => [w, s[k]] as [string, number]), ["unknown", unknown]];
}

/** splitText writes the parts that there are: "cpu 1.2 ms (60 %), blocked 0.8 ms (40 %)". */
export function splitText(s: Split, whole: number): string {
  const some = parts(s, whole).filter(([, ns]) => ns > 0);
  return some.map(([w, ns]) => `${w} ${duration(ns)} (${percent(whole > 0 ? ns / whole : 1)})`).join(", ") || "nothing is known";
}

/** splitBar shows the parts side by side. */
export function splitBar(s: Split, whole: number): HTMLElement {
  const bar = el("span", { class: "split", role: "img", title: splitText(s, whole), "aria-label": splitText(s, whole) });
  for (const [w, ns] of parts(s, whole)) {
    if (ns <= 0 || whole <= 0) continue;
    const part = el("span", { class: `state-${w}` });
    part.style.width = `${Math.min(100, (100 * ns) / whole)}%`;
    bar.append(part);
  }
  return bar;
}

/** splitRows are the parts below each other, with their shares. */
export function splitList(s: Split, whole: number): Child {
  return el(
    "span",
    { class: "split-list" },
    ...parts(s, whole)
      .filter(([, ns]) => ns > 0)
      .map(([w, ns]) => el("span", {}, el("span", { class: `dot state-${w}` }), `${w} `, el("strong", {}, duration(ns)), el("span", { class: "quiet" }, ` ${percent(whole > 0 ? ns / whole : 1)}`))),
  );
}

const bys: [By, string, string][] = [
  ["wall", "Wall", "all time"],
  ["cpu", "CPU", "time in which threads were on a processor"],
  ["ready", "Ready", "time in which threads could have run and did not: preempted, or woken and not on a processor yet"],
  ["blocked", "Blocked", "time in which threads waited"],
];

/** bySwitch chooses of what state times are. */
export function bySwitch(by: By, choose: (by: By) => void): HTMLElement {
  return el(
    "div",
    { class: "segments by", role: "group", "aria-label": "Times of" },
    ...bys.map(([v, t, hint]) => el("button", { "aria-pressed": String(by === v), title: hint, onclick: () => choose(v) }, t)),
  );
}

/** inWords says of what a sum of times is. */
export function inWords(by: By): string {
  return { wall: "in calls", cpu: "on a processor in calls", ready: "ready in calls", blocked: "blocked in calls" }[by];
}
