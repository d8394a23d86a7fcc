// When functions were off, as far as the timeline shows: the whole of a recording where that is little, else what is in sight.

import type { Api } from "./api";
import type { OffRun, OffView } from "./types";
import type { Span } from "./viewport";

const most = 2048; // stretches that are asked for at once
const again = 1000; // ms between requests for a recording in progress, and after one that failed

// What an answer is of that there is none of.
const failed = "failed";
const forgotten = "forgotten";

export class OffSource {
  view: OffView | null = null;
  requests = 0;
  private span: Span = { from: 0, to: 0 }; // that view is of
  private of = ""; // what was looked for then
  private text = "";
  private func = 0;
  private asking: AbortController | null = null;
  private asked = -Infinity; // when, ms
  private later = 0; // timer
  private little = true; // all of it was told at once, with nothing merged

  constructor(
    private api: Api,
    private arrived: () => void,
  ) {}

  /** find says what is looked for: what a text finds, or else one function. Its times are told apart. */
  find(text: string) {
    this.text = text;
    this.looked();
  }

  select(func: number) {
    this.func = func;
    this.looked();
  }

  /** forget lets everything be asked for again: the recording has ended. */
  forget() {
    this.asking?.abort();
    [this.asking, this.of] = [null, forgotten];
    this.arrived();
  }

  private looked() {
    if (this.key === this.of) return;
    this.asking?.abort();
    this.asking = null;
    this.arrived();
  }

  private get key(): string {
    return this.text ? `q${this.text}` : this.func > 0 ? `f${this.func}` : "";
  }

  /** found are the stretches in which what is looked for was off. */
  get found(): OffRun[] {
    return (this.of === this.key && this.view?.found_runs) || [];
  }

  /** want asks for what is missing of a range. */
  want(visible: Span, bounds: Span) {
    const info = this.api.info.reels[this.api.reel];
    if (this.asking || (!info.off && !info.live) || this.has(visible, bounds, info.live)) return;
    const wait = this.asked + again - performance.now();
    if (wait > 0 && (this.of === failed || (info.live && this.of === this.key))) {
      clearTimeout(this.later);
      this.later = window.setTimeout(() => this.arrived(), wait);
      return;
    }
    // At first all of it: often that is little, and then there is no more to ask.
    const all = this.little || this.of !== this.key;
    const margin = (visible.to - visible.from) / 2;
    const span = all ? bounds : { from: Math.max(bounds.from, visible.from - margin), to: Math.min(bounds.to, visible.to + margin) };
    this.ask({ from: Math.floor(span.from), to: Math.max(Math.ceil(span.to), Math.floor(span.from) + 1) }, all);
  }

  private has(w: Span, bounds: Span, live: boolean): boolean {
    if (this.of !== this.key || this.asked === -Infinity) return false;
    const s = this.span;
    const covers = s.from <= Math.max(bounds.from, w.from) && s.to >= Math.min(bounds.to, w.to);
    if (this.view === null) return !live || covers;
    if (!covers) return false;
    // What is merged is asked for anew where it would be seen.
    return this.view.whole || s.to - s.from <= 4 * (w.to - w.from);
  }

  private ask(span: Span, all: boolean) {
    const stop = (this.asking = new AbortController());
    const { key } = this;
    this.asked = performance.now();
    this.requests++;
    const what: Record<string, string | number> = this.text ? { q: this.text } : this.func > 0 ? { f: this.func } : {};
    this.api
      .json<OffView | null>("offview", { from: span.from, to: span.to, width: most, ...what }, stop.signal)
      .then((v) => {
        if (this.asking !== stop) return;
        [this.view, this.span, this.of, this.asking] = [v, span, key, null];
        if (all) this.little = v?.whole ?? true;
        this.arrived();
      })
      .catch(() => {
        // It is but a note; it is asked for again with a later frame.
        if (this.asking === stop) [this.asking, this.of] = [null, failed];
      });
  }

  /** looksFor says that something is looked for that was off at some time. */
  get looksFor(): boolean {
    return this.of === this.key && (this.view?.found ?? 0) > 0;
  }
}

/** runAt is the stretch that an instant is in. */
export function runAt(runs: OffRun[], at: number): OffRun | null {
  let [low, high] = [0, runs.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (runs[middle][1] < at) low = middle + 1;
    else high = middle;
  }
  return low < runs.length && runs[low][0] <= at ? runs[low] : null;
}

/** columnsOf marks the pixels of a picture that stretches reach into; null if none does. */
export function columnsOf(runs: OffRun[], visible: Span, width: number): Uint8Array | null {
  let columns: Uint8Array | null = null;
  const scale = width / (visible.to - visible.from);
  for (const [from, to] of runs) {
    if (to < visible.from || from > visible.to) continue;
    columns ??= new Uint8Array(width);
    const x0 = Math.max(0, Math.floor((from - visible.from) * scale));
    columns.fill(1, x0, Math.max(x0 + 1, Math.min(width, Math.ceil((to - visible.from) * scale))));
  }
  return columns;
}
