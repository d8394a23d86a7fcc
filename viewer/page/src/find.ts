// The find box: functions by name or glob, their calls one after the other.

import { debounce, el } from "./dom";
import { count, plural } from "./format";
import type { LanesTab } from "./lanestab";
import type { Reel } from "./reel";
import type { Call, Found } from "./types";

export class Find {
  readonly input = el("input", {
    type: "search",
    placeholder: "Find functions  /",
    "aria-label": "Find functions by name or glob",
    autocomplete: "off",
    spellcheck: "false",
  });
  readonly status = el("output", { class: "find-status", "aria-live": "polite" });
  readonly element: HTMLElement;
  private query = "";
  private stop: AbortController | null = null;
  private stepping: AbortController | null = null;

  constructor(
    private reels: Reel[],
    private tab: () => LanesTab,
    private owner: { changed(q: string): void; matched(reel: number, match: ReadonlySet<number> | null): void; failed(err: unknown): void; openTimeline(): void },
  ) {
    const previous = el("button", { "aria-label": "Previous match", title: "Shift+N", onclick: () => void this.next(-1) }, "‹");
    const next = el("button", { "aria-label": "Next match", title: "N", onclick: () => void this.next(1) }, "›");
    this.element = el("div", { class: "find", role: "search" }, this.input, this.status, previous, next);
    const changed = debounce(() => {
      owner.changed(this.input.value);
      this.search(this.input.value);
    }, 150);
    this.input.addEventListener("input", changed);
    this.input.addEventListener("keydown", (e) => {
      if (e.key === "Enter") {
        e.preventDefault();
        void this.next(e.shiftKey ? -1 : 1);
      } else if (e.key === "Escape") {
        e.stopPropagation();
        if (this.input.value) this.set("");
        else this.input.blur();
      }
    });
  }

  /** set looks for q and shows it in the box. */
  set(q: string) {
    this.input.value = q;
    this.owner.changed(q);
    this.search(q);
  }

  /** restore is set for what a URL says. */
  restore(q: string) {
    if (q === this.query) return;
    this.input.value = q;
    this.search(q);
  }

  private search(q: string) {
    if (q === this.query) return;
    this.query = q;
    this.stop?.abort();
    this.element.dataset.state = "searching";
    if (!q) {
      this.status.textContent = "";
      this.element.dataset.state = "still";
      this.reels.forEach((r) => this.owner.matched(r.index, null));
      return;
    }
    const stop = (this.stop = new AbortController());
    for (const reel of this.reels) void this.ask(reel, q, stop.signal);
  }

  // All matches are counted; what is marked is the first so many functions.
  private async ask(reel: Reel, q: string, signal: AbortSignal) {
    try {
      const f = await reel.api.json<Found>("find", { q, limit: 5000 }, signal);
      this.owner.matched(reel.index, new Set((f.functions ?? []).map((m) => m.id)));
      if (f.pending) setTimeout(() => signal.aborted || void this.ask(reel, q, signal), 400);
      if (reel !== this.tab().reel) return;
      this.status.textContent = f.matches === 0 ? "no match" : `${plural(f.matches, "function")}, ${f.pending ? "counting…" : `${count(f.calls)} calls`}`;
      if (!f.pending) this.element.dataset.state = "still";
    } catch (err) {
      if (!signal.aborted) this.owner.failed(err);
    }
  }

  /** next goes to the next or previous match in order of time over all lanes, and around at the end. */
  async next(direction: 1 | -1) {
    const q = this.input.value;
    if (!q) {
      this.input.focus();
      return;
    }
    this.search(q);
    this.stepping?.abort();
    const stop = (this.stepping = new AbortController());
    const tab = this.tab();
    this.element.dataset.state = "searching";
    try {
      const call = await this.step(tab, q, direction, stop.signal);
      if (stop.signal.aborted) return;
      this.element.dataset.state = "still";
      if (!call) {
        this.status.textContent = "no match";
        return;
      }
      this.owner.openTimeline();
      tab.jump(call);
    } catch (err) {
      if (!stop.signal.aborted) this.owner.failed(err);
    }
  }

  private async step(tab: LanesTab, q: string, direction: 1 | -1, signal: AbortSignal): Promise<Call | null> {
    const reel = tab.reel;
    const c = tab.call;
    const w = tab.timeline.target;
    const at = c ? { lane: c.lane, row: c.row, at: c.start_ns } : { lane: 0, row: 0, at: Math.max(0, Math.floor(direction > 0 ? w.from : w.to)) };
    const found = await reel.whole("next", { q, ...at, dir: direction }, signal);
    if (found) return found;
    if (direction > 0) return reel.whole("first", { q }, signal);
    return reel.whole("next", { q, lane: 0, row: 0, at: Math.ceil(tab.reel.bounds().to), dir: -1 }, signal);
  }
}
