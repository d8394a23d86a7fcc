// The tab with the timeline of one reel: overview, lanes, and below them what is
// known of the selected call and of the selected range.

import { arrowsOf } from "./arrows";
import { placeOf, showCall } from "./callview";
import type { Scheme } from "./color";
import { el, replace, select } from "./dom";
import { duration } from "./format";
import { describe, DumpBar, marks, triggerOf } from "./dump";
import { FunctionDetail } from "./functions";
import { offWhileMore } from "./off";
import { sorts } from "./layout";
import { Overview } from "./overview";
import { Peer } from "./peer";
import type { Reel } from "./reel";
import { Items } from "./items";
import { RangePanel } from "./rangepanel";
import { splitter } from "./splitter";
import { Timeline, type Bar } from "./timeline";
import type { Call, Mark, Overview as OverviewData, State } from "./types";
import { heights, type Place, type ViewState } from "./urlstate";
import { around, type Span } from "./viewport";
import { CallWaits, showState, type WaitActions } from "./waits";
import { WhyPanel } from "./why";

/** Shows is what the panel is of. */
type Shows = "call" | "item" | "state" | "range" | "why";

/** What the tab asks of its owner. */
export interface Owner {
  scheme(): Scheme;
  state: ViewState;
  change(patch: Partial<ViewState>, push: boolean): void;
  moved(): void;
  findName(q: string): void;
  openLane(lane: number): void;
  say(text: string): void;
  failed(err: unknown): void;
}

export class LanesTab {
  readonly element: HTMLElement;
  readonly timeline: Timeline;
  readonly overview: Overview;
  call: Call | null = null;
  state: State | null = null; // a stretch of a thread's states that is selected
  private waits: CallWaits;
  private why: WhyPanel;
  readonly peer: Peer;
  readonly items: Items; // what the program said
  private stateView = el("section", { class: "panel-state call-facts", role: "tabpanel", "aria-label": "Selected stretch of states", hidden: true });
  private dumpBar = new DumpBar({ go: (step) => this.stepTrigger(step), earlier: () => this.showEarlier() });
  readonly panel: HTMLElement;
  private rangePanel: RangePanel;
  private facts = el("section", { class: "call-facts", "aria-label": "Selected call" });
  private callView: HTMLElement;
  private detail: FunctionDetail;
  private tabs = el("div", { class: "panel-tabs", role: "tablist" });
  private shows: Shows | null = null;
  private selecting: AbortController | null = null;
  private colorBy: HTMLSelectElement;
  private sortBy: HTMLSelectElement;

  constructor(
    readonly reel: Reel,
    private owner: Owner,
  ) {
    this.timeline = new Timeline(reel.api, reel.names, owner.scheme, () => reel.bounds(), {
      moved: () => {
        this.overview?.draw();
        this.items?.moved();
        owner.moved();
      },
      said: (bar, at) => this.items.pick(bar, at),
      painted: () => this.peer?.follow(),
      state: (lane, at) => owner.change({ state: { lane, at: Math.floor(at) } }, true),
      selected: (bar, at) => (bar ? this.selectBar(bar, at) : owner.change({ selected: null, mark: null }, true)),
      ranged: (r) => owner.change({ range: r && { from: Math.floor(r.from), to: Math.ceil(r.to) } }, true),
      lane: (l) => owner.openLane(l),
      find: (name) => owner.findName(name),
      hovered: () => {},
      colorKey: (f) => this.colorKey(f),
      failed: (err) => owner.failed(err),
    });
    const t = this.timeline;
    t.titles = reel.titles;
    this.items = new Items(reel, t, {
      change: (patch, push) => owner.change(patch, push),
      changed: () => {
        if (this.items.mark) this.shows = "item";
        this.choosePanel();
      },
      measure: (m) => {
        this.shows = "range";
        owner.change({ range: { from: m.start_ns, to: m.start_ns + Math.max(1, m.duration_ns) } }, true);
      },
      find: (name) => owner.findName(name),
      say: (text) => owner.say(text),
      failed: (err) => owner.failed(err),
    });
    this.overview = new Overview((width, signal) => reel.api.json<OverviewData>("overview", { width }, signal), owner.scheme, {
      visible: () => t.target,
      bounds: () => reel.bounds(),
      range: () => t.range,
      marks: () => t.marks,
      show: (w, smoothly) => t.show(w, smoothly),
    });
    this.sortBy = select("Order of lanes", Object.entries(sorts).map(([k, s]) => [k, s.title]), "activity", (v) => owner.change({ sort: v }, false));
    this.colorBy = select("Colours", [["function", "by function"], ["image", "by image"]], "function", (v) => owner.change({ colors: v as "function" | "image" }, false));
    t.corner.append(this.sortBy, this.colorBy);
    this.detail = new FunctionDetail(
      () => reel.api,
      (l) => reel.laneTitle(l),
      (c) => this.jump(c),
    );
    const waiting: WaitActions = {
      select: (p) => this.selectAndReveal(p),
      state: (lane, at) => owner.change({ state: { lane, at } }, true),
      waker: (x) => this.goToWaker(x),
      stretch: (lane, from, to) => this.goToLine(lane, { from, to }),
      failed: (err) => owner.failed(err),
    };
    this.waiting = waiting;
    this.waits = new CallWaits(reel, waiting, () => {
      this.arrows();
      this.callView.classList.toggle("with-waits", !this.waits.element.hidden);
      if (this.call && this.waits.self) this.showCallFacts();
    });
    this.why = new WhyPanel(reel, {
      go: (l) => this.goToLine(l.lane!, { from: l.from_ns, to: l.to_ns }),
      peer: (c) => this.showPeer(c),
      failed: (err) => owner.failed(err),
      close: () => this.choosePanel(),
    });
    this.peer = new Peer(reel, t, owner.scheme, {
      colorKey: (f) => this.colorKey(f),
      open: (c) => this.jump(c),
      closed: () => this.showPeer(null),
      failed: (err) => owner.failed(err),
    });
    this.callView = el("div", { class: "panel-call", role: "tabpanel", hidden: true }, this.facts, this.waits.element, this.detail.element);
    this.rangePanel = new RangePanel(reel, t, owner, { call: (c) => this.jump(c), title: (title) => this.firstOf(title) });
    this.panel = el("section", { class: "panel", "aria-label": "Selection", hidden: true }, splitter(this), this.tabs, this.callView, this.items.element, this.stateView, this.rangePanel.element, this.why.element);
    this.element = el("div", { class: "tab-timeline" }, this.dumpBar.element, this.overview.element, t.element, this.peer.element, this.panel);
  }

  private colorKey(func: number): string | undefined {
    if (func === 0) return "";
    const n = this.reel.names.get(func);
    if (!n) return undefined;
    return this.owner.state.colors === "image" ? "image " + (n.module ?? "") : n.name;
  }

  /** apply makes the tab show the state; at says that it was just come to. */
  apply(s: ViewState, fromURL: boolean) {
    const t = this.timeline;
    this.sortBy.value = sorts[s.sort] ? s.sort : "activity";
    this.colorBy.value = s.colors;
    if (fromURL || this.fitting === 0) this.fitting = this.fittingHeight();
    const height = s.height || this.fitting;
    if (fromURL || t.rowHeight !== height || this.appliedSort !== s.sort) t.setRows(height, fromURL ? s.collapsed : t.closed, s.sort);
    this.appliedSort = s.sort;
    t.showSaid(s.said);
    if (fromURL) {
      if (s.visible && s.visible.from < this.reel.bounds().from) this.reel.earlier = true;
      this.showDump();
      t.show(s.visible ?? this.reel.bounds(), false);
      // The height of the lanes is known after the layout.
      requestAnimationFrame(() => (t.top = s.scroll * height));
    }
    t.range = s.range;
    t.recolor();
    this.overview.draw();
    this.applySelection(s.selected);
    this.items.apply(s.mark);
    this.items.moved();
    this.applyState(s.state);
    this.applyRange(s.range);
    this.rangePanel.show(s);
    this.choosePanel();
  }
  private appliedSort = "activity";
  private fitting = 0;

  // Rows are higher where all of them have room on the screen. Of a dump they are lower where that shows more threads: beside its call,
  // with the panel open, is to be seen what the others did.
  private fittingHeight(): number {
    const dump = this.reel.dump !== null;
    const available = this.timeline.scroller.clientHeight - (dump ? 250 : 0);
    const rows = this.reel.lanes.reduce((n, l) => n + Math.max(1, l.rows), 0);
    const strips = this.reel.lanes.filter((l) => l.states).length * 10;
    return (dump ? [22, 20, 16] : [22, 20]).find((h) => rows * h + this.reel.lanes.length * 12 + strips < available * 0.8) ?? (dump ? 12 : 16);
  }

  private applySelection(p: Place | null) {
    const t = this.timeline;
    const c = this.call;
    if (p && c && c.lane === p.lane && c.row === p.row && p.at >= c.start_ns && p.at <= c.start_ns + c.duration_ns) return;
    this.selecting?.abort();
    if (!p) {
      if (this.call) this.shows = t.range ? "range" : null;
      this.call = null;
      this.items.callSelected(null);
      this.waits.show(null);
      this.why.clear();
      this.showPeer(null);
      t.selected = null;
      t.offs.select(0);
      t.draw();
      return;
    }
    const stop = (this.selecting = new AbortController());
    this.reel
      .call(p, stop.signal)
      .then((call) => {
        if (stop.signal.aborted) return;
        if (call) {
          this.setCall(call);
          this.revealTrigger(call);
        }
        else this.owner.say("no call there");
      })
      .catch((err) => stop.signal.aborted || this.owner.failed(err));
  }

  private selectBar(bar: Bar, at: number) {
    this.reel
      .callIn(bar, at)
      .then((c) => {
        if (!c) return this.owner.say("no call there");
        this.setCall(c);
        this.owner.change({ selected: placeOf(c, c.lane) }, true);
        this.timeline.reveal(c.lane, c.row, { from: c.start_ns, to: c.start_ns + c.duration_ns }, false);
      })
      .catch((err) => this.owner.failed(err));
  }

  // The first of a title in the range.
  private firstOf(title: number) {
    const r = this.timeline.range;
    this.reel.api
      .json<Mark | null>("nextmark", { title, kind: "before", at: r?.from ?? 0 })
      .then((m) => m && this.items.jump(m))
      .catch((err) => this.owner.failed(err));
  }

  /** marksArrived shows what the program said, which may be known later than the calls. */
  marksArrived() {
    const t = this.timeline;
    t.pauses = this.reel.marks?.pauses ?? [];
    t.setLanes(this.reel.rows());
    this.items.apply(this.owner.state.mark);
    this.items.moved();
    t.draw();
  }

  /** setCall shows a call that is known already. */
  setCall(c: Call) {
    this.call = c;
    if (this.owner.state.mark) this.owner.change({ mark: null, selected: placeOf(c, c.lane) }, false);
    this.items.callSelected(c);
    this.timeline.selected = { lane: c.lane, row: c.row, start: c.start_ns, end: c.start_ns + c.duration_ns };
    this.timeline.offs.select(c.func);
    this.timeline.draw();
    this.shows = "call";
    this.waits.show(c);
    this.showCallFacts();
    this.detail.show(c.func, null, c.duration_ns);
    this.choosePanel();
    this.owner.say(`${c.name}, ${duration(c.duration_ns)}`);
  }

  /** jump selects a call and brings it into sight. */
  jump(c: Call, fit = false) {
    this.owner.change({ selected: placeOf(c, c.lane) }, true);
    this.setCall({ ...c, callers: c.callers ?? this.call?.callers });
    this.timeline.reveal(c.lane, c.row, { from: c.start_ns, to: c.start_ns + c.duration_ns }, fit);
    // Calls out of lists come without their callers.
    if (!c.callers) {
      this.call = null;
      this.applySelection(placeOf(c, c.lane));
    }
  }

  showCallFacts() {
    const c = this.call;
    if (!c) return;
    const name = this.reel.names.get(c.func);
    if (name?.pending) setTimeout(() => this.call === c && this.reel.names.again(c.func), 700);
    showCall(this.facts, c, name, this.reel.laneTitle(c.lane), this.reel.dump, this.waits.self, {
      select: (p) => this.selectAndReveal(p),
      fit: () => this.fitSelected(),
      find: (name) => this.owner.findName(name),
      measure: () => this.measureSelected(),
      off: (off) => offWhileMore(this.reel.api, { from: c.start_ns, to: c.start_ns + c.duration_ns }, off),
      why: this.reel.api.info.why ? () => this.askWhy() : null,
    });
  }

  // ---- states of threads, what calls waited for, and why

  private waiting: WaitActions;
  private stateKey = "";

  private applyState(p: ViewState["state"]) {
    const key = p ? `${p.lane}.${p.at}` : "";
    if (key === this.stateKey) return;
    this.stateKey = key;
    if (!p) {
      if (this.shows === "state") this.shows = null;
      this.state = this.timeline.state = null;
      this.arrows();
      return;
    }
    this.reel.api
      .json<State | null>("state", { lane: p.lane, at: Math.floor(p.at), deep: 1 })
      .then((x) => {
        if (this.stateKey !== key) return;
        if (!x) return this.owner.say("what the thread did there is not known");
        this.state = x;
        this.timeline.state = { lane: x.lane, from: x.from_ns, to: x.to_ns };
        this.shows = "state";
        const span = { from: x.from_ns, to: x.to_ns };
        showState(this.stateView, x, this.reel.laneTitle(x.lane), {
          ...this.waiting,
          fit: () => this.timeline.fit(span),
          measure: () => {
            this.shows = "range";
            this.owner.change({ range: { from: Math.floor(span.from), to: Math.ceil(span.to) } }, true);
          },
        });
        this.arrows();
        this.choosePanel();
        this.timeline.reveal(x.lane, 0, span, false);
      })
      .catch((err) => this.owner.failed(err));
  }

  // Arrows are those of the selected call's waits, and of the selected stretch.
  private arrows() {
    this.timeline.arrows = arrowsOf([...this.waits.waits, ...(this.state && !this.waits.waits.some((w) => w.from_ns === this.state!.from_ns && w.lane === this.state!.lane) ? [this.state] : [])]);
    this.timeline.draw();
  }

  // What a waker did when it ended the wait: the innermost call that was open then, or else its row.
  private goToWaker(x: State) {
    const lane = x.waker?.lane;
    if (lane === null || lane === undefined) return;
    this.reel.api
      .json<State | null>("state", { lane, at: Math.floor(x.to_ns) })
      .then((at) => {
        if (at?.in) this.selectAndReveal({ lane, row: at.in.row, at: x.to_ns });
        else if (at) this.owner.change({ state: { lane, at: Math.floor(x.to_ns) } }, true);
        else this.goToLine(lane, { from: x.from_ns, to: x.to_ns });
      })
      .catch((err) => this.owner.failed(err));
  }

  private goToLine(lane: number, span: Span) {
    this.timeline.reveal(lane, 0, span, true);
  }

  /** askWhy asks why the selected call was slow. */
  askWhy() {
    const c = this.call;
    if (!c) return this.owner.say("no call is selected");
    if (!this.reel.api.info.why) return this.owner.say("this callreel can't tell why");
    this.why.show(c);
    this.shows = "why";
    this.choosePanel();
  }

  private showPeer(peer: Call | null) {
    const of = this.why.call;
    if (peer && of) {
      this.peer.show(of, peer);
      this.timeline.reveal(of.lane, of.row, { from: of.start_ns, to: of.start_ns + of.duration_ns }, false);
    } else this.peer.hide();
    this.why.peerChanged(peer !== null);
  }

  private selectAndReveal(p: Place) {
    this.reel
      .call(p)
      .then((c) => c && this.jump(c))
      .catch((err) => this.owner.failed(err));
  }

  // ---- a dump

  private trigger = 0; // the one that is marked
  private arriving = false; // its call is still to come into sight

  private showDump() {
    const d = this.reel.dump;
    this.dumpBar.show(d, this.trigger, this.reel.before(), this.reel.earlier);
    this.timeline.mark(d, marks(d, this.trigger));
    this.overview.draw();
  }

  /** viewOf is how the i-th trigger of a dump is seen: its call takes about half of the screen; nothing if there is none. */
  viewOf(i: number): Partial<ViewState> {
    const t = this.reel.dump?.triggers[i];
    if (!t) return {};
    this.trigger = i;
    const bounds = this.reel.bounds();
    const [from, to] = [Math.max(t.start_ns, bounds.from), Math.min(t.end_ns, bounds.to)];
    this.arriving = t.row !== null;
    return {
      tab: "timeline",
      visible: to > from ? around({ from, to }, bounds, 0.5) : { ...bounds },
      selected: t.lane !== null && t.row !== null ? placeOf({ ...t, row: t.row }, t.lane) : null,
    };
  }

  /** stepTrigger goes to the next or the previous trigger, first of all to the one that is marked. */
  stepTrigger(step: 1 | -1) {
    const d = this.reel.dump;
    if (!d || d.triggers.length === 0) {
      this.owner.say(d ? "nothing is known of why the dump was made" : "this is no dump");
      return;
    }
    const view = this.viewOf(this.atTrigger ? (this.trigger + step + d.triggers.length) % d.triggers.length : this.trigger);
    this.owner.change({ tab: "timeline", selected: view.selected }, true);
    this.timeline.show(view.visible!);
    this.showDump();
    if (this.call) this.revealTrigger(this.call);
    this.owner.say(describe(d.triggers[this.trigger]));
  }

  // Whether the marked trigger is what is looked at.
  private get atTrigger(): boolean {
    const t = this.reel.dump!.triggers[this.trigger];
    if (t.row === null) return true;
    return this.call !== null && triggerOf(this.reel.dump, this.call) === t;
  }

  private revealTrigger(c: Call) {
    if (!this.arriving || !triggerOf(this.reel.dump, c)) return;
    this.arriving = false;
    // Where the view is scrolled to by the URL comes first.
    requestAnimationFrame(() => this.timeline.reveal(c.lane, c.row, this.timeline.target, false));
  }

  /** showEarlier shows what is before a dump's window, or no longer. */
  showEarlier() {
    if (this.reel.before() === 0) return;
    this.reel.earlier = !this.reel.earlier;
    this.timeline.show(this.reel.bounds());
    this.showDump();
  }

  fitSelected() {
    const s = this.timeline.selected;
    if (!s) this.items.fit();
    if (s) this.timeline.fit({ from: s.start, to: s.end });
  }

  measureSelected() {
    const s = this.timeline.selected ?? this.timeline.item;
    if (s) {
      this.shows = "range";
      this.owner.change({ range: { from: Math.floor(s.start), to: Math.ceil(s.end) } }, true);
    }
  }

  private applyRange(r: Span | null) {
    switch (this.rangePanel.apply(r)) {
      case "gone":
        if (this.shows === "range") this.shows = this.call ? "call" : null;
        break;
      case "other":
        this.shows = "range";
    }
  }

  private choosePanel() {
    const has = { call: this.call !== null, item: this.items.mark !== null, state: this.state !== null, range: this.timeline.range !== null, why: this.call !== null && this.why.call !== null };
    if (this.shows && !has[this.shows]) this.shows = has.call ? "call" : has.item ? "item" : has.state ? "state" : has.range ? "range" : null;
    this.panel.hidden = this.shows === null;
    this.callView.hidden = this.shows !== "call";
    this.items.element.hidden = this.shows !== "item";
    this.rangePanel.element.hidden = this.shows !== "range";
    this.stateView.hidden = this.shows !== "state";
    this.why.element.hidden = this.shows !== "why";
    const tab = (which: Shows, title: string) =>
      has[which] &&
      el("button", { role: "tab", "aria-selected": String(this.shows === which), onclick: () => {
        this.shows = which;
        this.choosePanel();
      } }, title);
    replace(
      this.tabs,
      tab("call", "Call"),
      tab("item", { span: "Span", async: "Span", instant: "Instant", value: "Counter" }[this.items.mark?.kind ?? "span"]),
      tab("why", "Why?"),
      tab("state", "State"),
      tab("range", "Range"),
      el("span", { class: "grow" }),
      el("button", { class: "close", "aria-label": "Close the panel", title: "Esc", onclick: () => this.owner.change({ selected: null, mark: null, state: null, range: null }, true) }, "✕"),
    );
  }

  /** step goes to a neighbour of the selected call. */
  step(to: "before" | "after" | "caller" | "callee") {
    const c = this.call;
    if (!c) {
      if (this.items.mark) void this.items.near(({ before: "before", after: "after", caller: "around", callee: "within" } as const)[to]);
      else this.selectCentre();
      return;
    }
    if (to === "caller") {
      const callers = c.callers ?? [];
      const up = callers[callers.length - 1];
      if (up) this.selectAndReveal(placeOf(up, c.lane));
      else this.owner.say("nothing called it that was recorded");
      return;
    }
    const bar = this.timeline.neighbour({ lane: c.lane, row: c.row, from: c.start_ns, to: c.start_ns + c.duration_ns }, to);
    if (bar) this.revealBar(bar);
    else this.owner.say("no further call is near");
  }

  selectCentre() {
    const bar = this.timeline.centreBar();
    if (!bar) {
      const said = this.timeline.centreSaid();
      if (said) this.items.pick(said, said.start);
      else this.owner.say("no call is shown");
      return;
    }
    this.revealBar(bar);
  }

  private revealBar(bar: Bar) {
    this.reel
      .callIn(bar, bar.start)
      .then((c) => c && this.jump(c))
      .catch((err) => this.owner.failed(err));
  }

  longest() {
    const f = this.call?.func;
    if (f === undefined) return void this.items.near("longest");
    this.reel.api
      .json<{ calls: Call[] | null }>("calls", { f, sort: "longest", limit: 1 })
      .then(({ calls }) => calls?.[0] && this.jump(calls[0], true))
      .catch((err) => this.owner.failed(err));
  }

  rows(by: number) {
    const now = this.timeline.rowHeight;
    const i = heights.findIndex((h) => h >= now) + by;
    if (i >= 0 && i < heights.length) this.owner.change({ height: heights[i] }, false);
  }

  namesArrived() {
    this.timeline.namesArrived();
    this.peer.timeline.namesArrived();
    if (this.call && !this.facts.contains(document.activeElement)) this.showCallFacts();
  }
}
