// What threads waited for: of the selected call, and of a stretch of a thread's states that is selected.

import { el, replace, type Child } from "./dom";
import { count, duration, plural, since } from "./format";
import { shown } from "./names";
import type { Reel } from "./reel";
import type { Call, Holder, State, Waits } from "./types";
import type { Place } from "./urlstate";

/** WaitActions are what a click leads to. */
export interface WaitActions {
  select(p: Place): void; // a call
  state(lane: number, at: number): void; // a stretch of states
  waker(x: State): void; // who ended a wait, and when
  stretch(lane: number, from: number, to: number): void; // of a thread's time
  failed(err: unknown): void;
}

/** stateTitle says what a thread did. */
export function stateTitle(x: State): string {
  switch (x.state) {
    case "cpu":
      return x.cpu === undefined ? "on a processor" : `on CPU ${x.cpu}`;
    case "ready":
      return x.preempted ? "ready: preempted, could have run on" : "ready: woken, not on a processor yet";
    case "blocked":
      return x.uninterruptible ? "blocked, uninterruptible (state D)" : "blocked";
  }
  return "not known: words of the scheduler are missing";
}

/** waitsOn says what was waited for, "" if that isn't known. */
export function waitsOn(x: State): string {
  const w = x.wait;
  if (!w) return "";
  return [w.kind || w.name || "", w.object || w.address || ""].filter(Boolean).map((t) => shown(t, 120)).join(" ");
}

/** wokenBy says who ended a wait. */
export function wokenBy(x: State): string {
  const w = x.waker;
  if (!w) return "";
  if (w.kernel) return "the kernel: an interrupt or a timer";
  return w.name ? `${shown(w.name, 40)} (${w.tid})` : `${w.tid}, which was not recorded`;
}

/** stateLines are the lines that tell about a stretch under the pointer. */
export function stateLines(x: State): string[] {
  const who = wokenBy(x);
  return [
    stateTitle(x),
    `${duration(x.to_ns - x.from_ns)}${x.ready_ns ? `, then ready for ${duration(x.ready_ns)}` : ""}`,
    x.in ? `in ${shown(x.in.name, 100)}` : "",
    waitsOn(x) ? `on ${waitsOn(x)}` : "",
    who ? `woken by ${who}` : "",
  ].filter(Boolean);
}

function wakerLink(x: State, act: WaitActions): Child {
  const who = wokenBy(x);
  if (!who) return null;
  if (x.waker!.lane === null) return el("span", { class: "quiet" }, who);
  return el("button", { class: "link inline", title: "go to what it did then", onclick: () => act.waker(x) }, el("span", { class: "name" }, who));
}

/** heldText says what a thread did while it was waited for. */
function heldText(h: Holder): string {
  if (!h.function) return "";
  return `${shown(h.function, 80)} for ${duration(h.held_ns)}${h.in ? `, nearly all in ${shown(h.in, 80)}` : ""}`;
}

function holderLinks(x: State, act: WaitActions): Child[] {
  return (x.holders ?? [])
    .filter((h) => h.function)
    .map((h) =>
      el(
        "span",
        { class: "holder" },
        el("span", { class: "quiet" }, "meanwhile "),
        h.lane === null ? shown(h.name ?? `${h.tid}`, 40) : el("button", { class: "link inline", title: "go to what it did meanwhile", onclick: () => act.stretch(h.lane!, h.from_ns, h.to_ns) }, el("span", { class: "name" }, shown(h.name || `${h.tid}`, 40))),
        el("span", { class: "quiet" }, " was in "),
        el("span", { class: "name" }, heldText(h)),
      ),
    );
}

function callLink(x: State, act: WaitActions): Child {
  return x.in ? el("button", { class: "link inline", onclick: () => act.select({ lane: x.lane, row: x.in!.row, at: x.from_ns }) }, el("span", { class: "name" }, shown(x.in.name, 120))) : null;
}

/** CallWaits lists what the selected call waited for. */
export class CallWaits {
  readonly element = el("section", { class: "waits", "aria-label": "What it waited for", hidden: true });
  waits: State[] = []; // that are listed
  self: Waits["self"];
  private stop: AbortController | null = null;
  private key = "";

  constructor(
    private reel: Reel,
    private act: WaitActions,
    private arrived: () => void,
  ) {}

  show(c: Call | null) {
    const key = c ? `${c.lane} ${c.row} ${c.start_ns} ${c.duration_ns}` : "";
    if (key === this.key) return;
    this.key = key;
    this.stop?.abort();
    this.waits = [];
    this.self = undefined;
    this.element.hidden = true;
    this.element.dataset.state = "still";
    if (!c?.states) return this.arrived();
    const stop = (this.stop = new AbortController());
    this.element.dataset.state = "loading";
    const ask = (deep: number) => this.reel.api.json<Waits | null>("waits", { lane: c.lane, row: c.row, at: Math.floor(c.start_ns + c.duration_ns / 2), deep }, stop.signal);
    const take = (w: Waits | null) => {
      this.fill(w, c);
      this.arrived();
      return w;
    };
    // Who was waited for takes longer to find out.
    ask(0)
      .then(take)
      .then((w) => (w && w.waits.length > 0 ? ask(1).then(take) : w))
      .then(() => (this.element.dataset.state = "still"))
      .catch((err) => stop.signal.aborted || this.act.failed(err));
  }

  private fill(w: Waits | null, c: Call) {
    this.waits = w?.waits ?? [];
    this.self = w?.self;
    const has = w !== null && (w.long > 0 || w.short > 0);
    this.element.hidden = !has;
    if (!w || !has) return;
    replace(
      this.element,
      el("h3", {}, "Waited"),
      el("ol", { class: "wait-list" }, ...w.waits.map((x) => this.line(x, c))),
      w.long > w.waits.length && el("p", { class: "quiet" }, `the longest ${count(w.waits.length)} of ${count(w.long)} stretches of 100 µs and more`),
      w.short > 0 && el("p", { class: "quiet" }, `${plural(w.short, w.long > 0 ? "shorter stretch" : "stretch of less than 100 µs").replace(/stretchs/, "stretches").replace(/ µss$/, " µs")}: ${duration(w.short_ns)}`),
    );
  }

  private line(x: State, c: Call): HTMLElement {
    const on = waitsOn(x);
    return el(
      "li",
      {},
      el(
        "button",
        { class: "wait-time", title: `${stateTitle(x)}; starts ${duration(x.from_ns - c.start_ns)} into the call`, onclick: () => this.act.state(x.lane, x.from_ns) },
        el("span", { class: `dot state-${x.uninterruptible ? "uninterruptible" : "blocked"}` }),
        duration(x.to_ns - x.from_ns),
      ),
      el(
        "span",
        { class: "wait-what" },
        x.in && el("span", {}, el("span", { class: "quiet" }, "in "), callLink(x, this.act)),
        on !== "" && el("span", { class: "name", title: on }, el("span", { class: "quiet" }, "on "), on),
        x.waker && el("span", {}, el("span", { class: "quiet" }, "woken by "), wakerLink(x, this.act)),
        ...holderLinks(x, this.act),
        x.ready_ns ? el("span", { class: "quiet" }, `ran ${duration(x.ready_ns)} later`) : null,
      ),
    );
  }
}

/** showState fills an element with what is known of a stretch of states. */
export function showState(into: HTMLElement, x: State, lane: string, act: WaitActions & { fit(): void; measure(): void }) {
  const row = (title: string, ...value: Child[]) => [el("dt", {}, title), el("dd", {}, ...value)];
  const who = wakerLink(x, act);
  const on = waitsOn(x);
  const span = x.to_ns - x.from_ns;
  replace(
    into,
    el("h2", { class: "call-name" }, el("span", { class: `dot state-${x.uninterruptible ? "uninterruptible" : x.state}` }), stateTitle(x)),
    el("div", { class: "actions" }, el("button", { onclick: act.fit }, "Fit"), el("button", { onclick: act.measure }, "Take as range")),
    el(
      "dl",
      { class: "facts" },
      ...row("Duration", el("strong", {}, duration(span))),
      ...row("Start", duration(since(x.from_ns)), el("span", { class: "quiet" }, ` ${count(since(x.from_ns))} ns`)),
      ...row("Thread", el("span", { class: "name" }, shown(lane, 100))),
      ...(x.in ? row(x.state === "blocked" ? "Waits in" : "In", callLink(x, act)) : []),
      ...(on ? row("On", el("span", { class: "name wrap" }, on)) : []),
      ...(who ? row("Woken by", who) : []),
      ...holderLinks(x, act).flatMap((h) => row("", h)),
      ...(x.ready_ns ? row("Then", `ready for ${duration(x.ready_ns)} until it ran`) : []),
    ),
  );
}
