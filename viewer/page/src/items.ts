// What the program said, of a tab: the item that is selected, the flows in sight.

import { debounce, el } from "./dom";
import { duration } from "./format";
import { showItem } from "./itemview";
import { shown } from "./names";
import type { Reel } from "./reel";
import { value, type SaidBar } from "./said";
import type { Timeline } from "./timeline";
import type { Call, Flow, Mark } from "./types";
import type { ViewState } from "./urlstate";
import { length } from "./viewport";

/** kindOf is how a mark is asked for. */
export function kindOf(m: Mark): "span" | "instant" | "value" {
  return m.kind === "async" ? "span" : m.kind;
}

/** spotOf is an instant inside a mark. */
export function spotOf(m: Mark): NonNullable<ViewState["mark"]> {
  return { kind: kindOf(m), lane: m.lane, row: m.row, at: m.kind === "span" || m.kind === "async" ? Math.floor(m.start_ns + m.duration_ns / 2) : m.start_ns };
}

// So many flows are drawn at once; where there are more, only those of what is selected.
const mostFlows = 300;

export interface ItemOwner {
  change(patch: Partial<ViewState>, push: boolean): void;
  changed(): void; // what is selected
  measure(m: Mark): void;
  find(name: string): void;
  say(text: string): void;
  failed(err: unknown): void;
}

export class Items {
  readonly element = el("section", { class: "panel-item call-facts", role: "tabpanel", "aria-label": "Selected span, instant or counter", hidden: true });
  mark: Mark | null = null;
  private key = "";
  private stop: AbortController | null = null;
  private flowKey = "";
  private ofCall: Flow[] = [];
  private callKey = "";

  constructor(
    private reel: Reel,
    private timeline: Timeline,
    private owner: ItemOwner,
  ) {}

  /** apply selects what the URL says; reveal brings it into sight. */
  apply(p: ViewState["mark"], reveal = false) {
    const key = p ? `${p.kind}.${p.lane}.${p.row}.${p.at}` : "";
    if (key === this.key) return;
    this.stop?.abort();
    if (p && this.reel.marks?.state !== "ready") return; // it is asked for when that is there
    this.key = key;
    if (!p) {
      this.set(null);
      return;
    }
    const stop = (this.stop = new AbortController());
    const near = p.kind === "value" ? 0 : 2;
    this.reel.api
      .json<Mark | null>("mark", { kind: p.kind, lane: p.lane, row: p.row, at: Math.floor(p.at), near }, stop.signal)
      .then((m) => {
        if (stop.signal.aborted) return;
        if (!m) return this.owner.say("nothing was said there");
        this.set(m);
        this.timeline.revealSaid(m.lane, m.row, { from: m.start_ns, to: m.start_ns + (m.kind === "value" ? 0 : m.duration_ns) });
        if (reveal) this.timeline.draw();
      })
      .catch((err) => stop.signal.aborted || this.owner.failed(err));
  }

  /** pick selects what is drawn at a place. */
  pick(b: SaidBar, at: number) {
    const place = b.kind === "span" ? (b.count > 1 ? Math.min(Math.max(at, b.start), b.start + b.duration) : b.start + b.duration / 2) : b.kind === "value" ? Math.max(at, b.start) : b.start;
    this.owner.change({ mark: { kind: b.kind, lane: b.lane, row: b.row, at: Math.floor(place) }, selected: null }, true);
  }

  /** jump selects a mark that was found. */
  jump(m: Mark) {
    this.owner.change({ mark: spotOf(m), selected: null, said: true }, true);
  }

  private set(m: Mark | null) {
    this.mark = m;
    const t = this.timeline;
    t.item = m && { lane: m.lane, row: m.row, start: m.start_ns, end: m.start_ns + (m.kind === "value" ? 0 : m.duration_ns), kind: m.kind };
    this.strong();
    if (m) {
      showItem(this.element, m, {
        fit: () => this.fit(),
        measure: () => this.owner.measure(m),
        find: (name) => this.owner.find(name),
        next: (direction) => void this.next(direction),
        flow: (f, end) => this.follow(f, end),
        laneTitle: (lane) => this.reel.laneTitle(lane),
      });
      this.owner.say(m.value !== undefined ? `${shown(m.name, 100)}: ${value(m.value)}` : `${shown(m.name, 100)}, ${duration(m.duration_ns)}`);
    }
    this.owner.changed();
    t.draw();
  }

  fit() {
    const m = this.mark;
    if (m && m.duration_ns > 0) this.timeline.fit({ from: m.start_ns, to: m.start_ns + m.duration_ns });
  }

  // The next or previous one of the same title.
  private async next(direction: 1 | -1) {
    const m = this.mark;
    if (!m) return;
    try {
      const found = await this.reel.api.json<Mark | null>("nextmark", { title: m.title, kind: m.kind, lane: m.lane, row: m.row, at: m.start_ns, dir: direction });
      if (found) this.jump(found);
      else this.owner.say("there is no further one");
    } catch (err) {
      this.owner.failed(err);
    }
  }

  /** near goes to what is next to what is selected: in its row, around it, within it, or to the longest of its title. */
  async near(to: "before" | "after" | "around" | "within" | "longest") {
    const m = this.mark;
    if (!m) return;
    const p = spotOf(m);
    try {
      const found = await this.reel.api.json<Mark | null>("nearmark", { kind: m.kind, lane: p.lane, row: p.row, at: p.at, to });
      if (found) this.jump(found);
      else this.owner.say({ before: "there is none before it", after: "there is none after it", around: "no span is around it", within: "no span is in it", longest: "none is complete" }[to]);
    } catch (err) {
      this.owner.failed(err);
    }
  }

  // Where a flow comes from, or goes to: the innermost span there, else just the place.
  private follow(f: Flow, end: "from" | "to") {
    const lane = end === "from" ? f.from_lane : f.to_lane;
    const at = end === "from" ? f.from_ns : f.to_ns;
    if (lane === null) return;
    const rows = this.timeline.layout.byLane.get(lane)?.lane.spans ?? 0;
    const asked = Array.from({ length: rows }, (_, row) => this.reel.api.json<Mark | null>("mark", { kind: "span", lane, row, at: Math.floor(at), brief: 1 }));
    Promise.all(asked).then(
      (found) => {
        const there = found.filter((m): m is Mark => m !== null);
        // They may cross: the innermost is the one that began last.
        if (there.length > 0) this.jump(there.reduce((a, b) => (b.start_ns >= a.start_ns ? b : a)));
        else this.timeline.reveal(lane, 0, { from: at, to: at + 1 }, false);
      },
      (err) => this.owner.failed(err),
    );
  }

  // ---- flows

  /** callSelected asks for a call's flows, which are drawn while it is selected. */
  callSelected(c: Call | null) {
    const key = c && this.reel.marks?.flows ? `${c.lane} ${c.start_ns} ${c.duration_ns}` : "";
    if (key === this.callKey) return;
    this.callKey = key;
    this.ofCall = [];
    this.strong();
    if (!c || !key) return;
    this.reel.api
      .json<{ flows: Flow[] }>("flows", { lane: c.lane, from: c.start_ns, to: c.start_ns + Math.max(1, c.duration_ns) })
      .then(({ flows }) => {
        if (this.callKey !== key) return;
        this.ofCall = flows;
        this.strong();
      })
      .catch(() => {});
  }

  private strong() {
    this.timeline.strong = [...(this.mark?.flows ?? []), ...this.ofCall];
    this.timeline.draw();
  }

  /** moved asks for the flows in sight, once nothing moves. */
  moved = debounce(() => {
    const t = this.timeline;
    if (!this.reel.marks?.flows) return;
    const w = t.target;
    const key = `${Math.floor(w.from)} ${Math.ceil(w.to)} ${this.reel.marks.flows}`;
    if (key === this.flowKey) return;
    this.flowKey = key;
    const margin = length(w) / 2;
    this.reel.api
      .json<{ flows: Flow[] }>("flows", { from: Math.max(0, Math.floor(w.from - margin)), to: Math.ceil(w.to + margin), limit: mostFlows })
      .then(({ flows }) => {
        if (this.flowKey !== key) return;
        t.flows = flows;
        t.draw();
      })
      .catch(() => (this.flowKey = ""));
  }, 150);
}
