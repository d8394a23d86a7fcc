// An ordinary call below the selected one: a second timeline at the same scale, both beginning where their calls do.

import { el } from "./dom";
import { duration } from "./format";
import { shown } from "./names";
import type { Scheme } from "./color";
import type { Reel } from "./reel";
import { Timeline } from "./timeline";
import type { Call } from "./types";
import { same, type Span } from "./viewport";

// Whatever is before a peer's recording begins, or behind its end, may be in sight: calls stay aligned.
const anywhere = 2 ** 52;

export class Peer {
  readonly element: HTMLElement;
  readonly timeline: Timeline;
  private title = el("span", {});
  private call: Call | null = null; // the one that is explained
  peer: Call | null = null;
  private following = false;
  private followed: Span = { from: 0, to: 0 }; // what was shown last because the main timeline did

  constructor(
    private reel: Reel,
    private main: Timeline,
    scheme: () => Scheme,
    act: { colorKey(func: number): string | undefined; open(c: Call): void; closed(): void; failed(err: unknown): void },
  ) {
    this.timeline = new Timeline(reel.api, reel.names, scheme, () => (this.peer ? { from: -anywhere, to: anywhere } : reel.bounds()), {
      moved: () => this.lead(),
      selected: (bar, at) => bar && reel.callIn(bar, at).then((c) => c && act.open(c), act.failed),
      ranged: () => {},
      lane: () => {},
      hovered: () => {},
      colorKey: act.colorKey,
      failed: act.failed,
    });
    this.timeline.titles = reel.titles;
    this.timeline.canvas.setAttribute("aria-label", "An ordinary call, aligned with the selected one at its start");
    this.element = el(
      "section",
      { class: "peer", "aria-label": "A peer of the selected call", hidden: true },
      el("h3", {}, el("span", { class: "side" }, "P"), this.title, el("span", { class: "grow" }), el("button", { class: "close", "aria-label": "Close the peer", onclick: () => act.closed() }, "✕")),
      this.timeline.element,
    );
  }

  /** show puts the peer beside a call. */
  show(call: Call, peer: Call) {
    this.call = call;
    this.peer = peer;
    this.element.hidden = false;
    this.title.textContent = `${shown(peer.name, 80)} took ${duration(peer.duration_ns)} here, in ${shown(this.reel.laneTitle(peer.lane), 60)}`;
    const t = this.timeline;
    t.setLanes(this.reel.lanes, peer.lane);
    t.setRows(this.main.rowHeight, [], "activity");
    t.selected = { lane: peer.lane, row: peer.row, start: peer.start_ns, end: peer.start_ns + peer.duration_ns };
    this.follow();
    requestAnimationFrame(() => {
      const slot = t.layout.byLane.get(peer.lane);
      if (slot) t.top = Math.max(0, t.layout.rowTop(slot, peer.row) - 24);
    });
  }

  hide() {
    this.element.hidden = true;
    this.call = this.peer = null;
  }

  /** follow shows of the peer what the main timeline shows of the call. */
  follow() {
    if (!this.call || !this.peer || this.following) return;
    const by = this.peer.start_ns - this.call.start_ns;
    this.following = true;
    this.followed = { from: this.main.visible.from + by, to: this.main.visible.to + by };
    this.timeline.show(this.followed, false);
    this.following = false;
  }

  // The other way round.
  private lead() {
    if (!this.call || !this.peer || this.following || same(this.timeline.target, this.followed)) return;
    const by = this.call.start_ns - this.peer.start_ns;
    this.following = true;
    this.main.show({ from: this.timeline.target.from + by, to: this.timeline.target.to + by }, false);
    this.following = false;
  }
}
