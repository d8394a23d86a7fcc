// Why the selected call was slow, as the server has it from package why: lines that lead to their places.

import { el, replace, type Child } from "./dom";
import { duration } from "./format";
import { Progress } from "./progress";
import { shown } from "./names";
import type { Reel } from "./reel";
import type { Call, Why, WhyLine } from "./types";
import { placeOf } from "./callview";

/** WhyActions are what lines and buttons lead to. */
export interface WhyActions {
  go(l: WhyLine): void;
  peer(c: Call | null): void; // null: close it
  failed(err: unknown): void;
  close(): void;
}

export class WhyPanel {
  readonly element = el("div", { class: "panel-why", role: "tabpanel", hidden: true });
  private stop: AbortController | null = null;
  call: Call | null = null; // that is explained
  private answer: Why | null = null;
  peerOpen = false;

  constructor(
    private reel: Reel,
    private act: WhyActions,
  ) {}

  /** show asks why the call was slow. */
  show(c: Call) {
    if (this.call && this.call.lane === c.lane && this.call.row === c.row && this.call.start_ns === c.start_ns && this.element.dataset.state !== "failed") return;
    this.stop?.abort();
    const stop = (this.stop = new AbortController());
    this.call = c;
    this.answer = null;
    const progress = new Progress(() => {
      stop.abort();
      this.clear();
      this.act.close();
    });
    stop.signal.addEventListener("abort", () => progress.end());
    this.element.dataset.state = "loading";
    replace(this.element, el("p", { class: "quiet" }, "holding it against its peers… "), progress.element);
    this.reel.api
      .json<Why>("why", { lane: c.lane, row: c.row, at: placeOf(c, c.lane).at, ticket: progress.ticket }, stop.signal)
      .finally(() => progress.end())
      .then((w) => {
        this.answer = w;
        this.element.dataset.state = "still";
        this.fill();
      })
      .catch((err) => {
        if (stop.signal.aborted) return;
        this.element.dataset.state = "failed";
        replace(this.element, el("p", { class: "failure", role: "alert" }, String((err as Error).message)));
      });
  }

  clear() {
    this.stop?.abort();
    this.call = this.answer = null;
    replace(this.element);
  }

  /** peerChanged says whether the peer's timeline is open. */
  peerChanged(open: boolean) {
    this.peerOpen = open;
    if (this.answer) this.fill();
  }

  private fill() {
    const { answer, call } = this;
    if (!answer || !call) return;
    const peer = answer.peer ?? null;
    replace(
      this.element,
      el(
        "div",
        { class: "why-head" },
        el("h2", { class: "call-name name" }, `Why did ${shown(call.name, 120)} take ${duration(call.duration_ns)}?`),
        peer && el("button", { "aria-pressed": String(this.peerOpen), title: "an ordinary call of the same function, below, aligned at its start", onclick: () => this.act.peer(this.peerOpen ? null : peer) }, "Compare with a peer"),
        peer && el("span", { class: "quiet" }, `${duration(peer.duration_ns)}, ${shown(this.reel.laneTitle(peer.lane), 60)}`),
      ),
      el("ol", { class: "why-lines" }, ...(answer.lines ?? []).map((l) => el("li", { class: `why-${l.kind}` }, this.line(l)))),
    );
  }

  private line(l: WhyLine): Child {
    const text = el("span", { class: "name" }, shown(l.text, 2000));
    if (l.lane === null || l.to_ns <= l.from_ns) return text;
    return el("button", { class: "link", title: "go there", onclick: () => this.act.go(l) }, text);
  }
}
