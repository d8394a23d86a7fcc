// The find box: functions by name or glob, their calls one after the other.

import { debounce, el } from "./dom";
import { count, plural } from "./format";
import type { LanesTab } from "./lanestab";
import type { Reel } from "./reel";
import type { Call, Found, Mark, OffView } from "./types";

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
    private owner: { changed(q: string): void; matched(reel: number, match: ReadonlySet<number> | null): void; titles(reel: number, match: ReadonlySet<number> | null): void; failed(err: unknown): void; openTimeline(): void },
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
      this.reels.forEach((r) => {
        this.owner.matched(r.index, null);
        this.owner.titles(r.index, null);
      });
      return;
    }
    const stop = (this.stop = new AbortController());
    for (const reel of this.reels) void this.ask(reel, q, stop.signal);
  }

  // All matches are counted; what is marked is the first so many functions.
  private async ask(reel: Reel, q: string, signal: AbortSignal) {
    try {
      const [f, m] = await Promise.all([reel.api.json<Found>("find", { q, limit: 5000 }, signal), this.titles(reel, q, signal)]);
      this.owner.matched(reel.index, new Set((f.functions ?? []).map((m) => m.id)));
      if (f.pending) setTimeout(() => signal.aborted || void this.ask(reel, q, signal), 400);
      const off = reel.info.off || reel.info.live ? await reel.api.json<OffView | null>("offview", { q, width: 1 }, signal) : null;
      if (reel !== this.tab().reel) return;
      const said = m.matches > 0 ? `${plural(m.matches, "title")}, ${count(m.count)} marks` : "";
      const calls = f.matches > 0 || !said ? `${plural(f.matches, "function")}, ${f.pending ? "counting…" : `${count(f.calls)} calls`}` : "";
      const unheard = !off?.found ? "" : f.matches > 0 ? `${count(off.found)} off for some time` : `${plural(off.found, "function")} off for some time`;
      // What has no call that was recorded may have been off: that isn't silence.
      const found = f.matches === 0 && !said ? (unheard ? "no call recorded" : "no match") : [calls, said].filter(Boolean).join("; ");
      this.status.textContent = this.status.title = [found, unheard].filter(Boolean).join("; ");
      if (!f.pending) this.element.dataset.state = "still";
    } catch (err) {
      if (!signal.aborted) this.owner.failed(err);
    }
  }

  // Titles of what the program said.
  private async titles(reel: Reel, q: string, signal: AbortSignal): Promise<{ matches: number; count: number }> {
    if (!reel.marks?.marks) {
      this.owner.titles(reel.index, null);
      return { matches: 0, count: 0 };
    }
    const m = await reel.api.json<{ titles: { id: number }[]; matches: number; count: number }>("findmarks", { q, limit: 5000 }, signal);
    this.owner.titles(reel.index, new Set(m.titles.map((t) => t.id)));
    return m;
  }

  /** marksArrived looks again, as there may be more to find. */
  marksArrived() {
    const q = this.query;
    if (!q) return;
    this.query = "";
    this.search(q);
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
      const found = await this.step(tab, q, direction, stop.signal);
      if (stop.signal.aborted) return;
      this.element.dataset.state = "still";
      if (!found) {
        this.status.textContent = "no match";
        return;
      }
      this.owner.openTimeline();
      if ("call" in found) tab.jump(found.call);
      else tab.items.jump(found.mark);
    } catch (err) {
      if (!stop.signal.aborted) this.owner.failed(err);
    }
  }

  // What is nearer: a call or a mark. At the same time the call comes first.
  private async step(tab: LanesTab, q: string, direction: 1 | -1, signal: AbortSignal): Promise<{ call: Call } | { mark: Mark } | null> {
    const nearer = (call: Call | null, mark: Mark | null) => {
      if (!call || !mark) return call ? { call } : mark ? { mark } : null;
      const first = direction > 0 ? call.start_ns <= mark.start_ns : call.start_ns > mark.start_ns;
      return first ? { call } : { mark };
    };
    const m = tab.items.mark;
    const c = m ? null : tab.call;
    const w = tab.timeline.target;
    const here = m ? m.start_ns : Math.max(0, Math.floor(direction > 0 ? w.from : w.to));
    const end = Math.ceil(tab.reel.bounds().to);
    // After a mark come the calls that begin later; before it also those that begin at the same time.
    const at = c ? { lane: c.lane, row: c.row, at: c.start_ns } : { lane: 0, row: 0, at: m ? m.start_ns + 1 : here };
    const said: Record<string, string | number> = c
      ? { kind: "before", at: c.start_ns }
      : m
        ? { kind: m.kind, lane: m.lane, row: m.row, at: m.start_ns }
        : { kind: direction > 0 ? "before" : "after", at: here };
    const found = nearer(...(await Promise.all([tab.reel.whole("next", { q, ...at, dir: direction }, signal), this.mark(tab.reel, { q, ...said, dir: direction }, signal)])));
    if (found) return found;
    if (direction > 0) return nearer(...(await Promise.all([tab.reel.whole("first", { q }, signal), this.mark(tab.reel, { q, kind: "before", at: 0 }, signal)])));
    return nearer(...(await Promise.all([tab.reel.whole("next", { q, lane: 0, row: 0, at: end, dir: -1 }, signal), this.mark(tab.reel, { q, kind: "after", at: end, dir: -1 }, signal)])));
  }

  private mark(reel: Reel, params: Record<string, string | number>, signal: AbortSignal): Promise<Mark | null> {
    if (!reel.marks?.marks) return Promise.resolve(null);
    return reel.api.json<Mark | null>("nextmark", params, signal);
  }
}
