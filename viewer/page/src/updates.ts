// What changes while the page is open: recordings in progress grow, and end.

import { info as loadInfo } from "./api";
import { debounce } from "./dom";
import { listenTo } from "./live";
import type { Reel } from "./reel";

/** UpdateListener is told. */
export interface UpdateListener {
  grown(reel: number, before: number): void; // before: where it ended, ns
  changed(reel: number): void; // its lanes and facts
  ended(reel: number): void; // and what is known of it is final
  answers(does: boolean): void; // the server, or no longer
  failed(err: unknown): void;
}

// Whether others' recordings still go on, is asked now and then: nobody tells of one that makes no progress.
const askEvery = 5000; // ms

export class Updates {
  private lanesSoon = debounce(() => void this.reload(), 400);
  private asking: ReturnType<typeof setInterval>;

  constructor(
    private reels: Reel[],
    private owner: UpdateListener,
  ) {
    listenTo({
      progress: () => {},
      grown: (i, ns, data) => this.grown(i, ns, data),
      closed: (i) => void this.closed(i),
      answers: (does) => owner.answers(does),
    });
    this.asking = setInterval(() => this.reels.some((r) => r.info.live) && void this.facts().catch(() => {}), askEvery);
  }

  private grown(i: number, ns: number, data: Record<string, unknown>) {
    const reel = this.reels[i];
    if (!reel || this.over.has(i)) return;
    const before = reel.bounds().to;
    const longer = ns > reel.info.duration_ns;
    reel.info.live = true;
    reel.info.duration_ns = Math.max(ns, reel.info.duration_ns);
    if (typeof data.events === "number") reel.info.events = data.events;
    if (longer) this.owner.grown(i, before);
    this.lanesSoon();
  }

  private over = new Set<number>();

  // The last stretch may have come with the end, and the facts are those of the whole from now on.
  private async closed(i: number) {
    const reel = this.reels[i];
    if (!reel || this.over.has(i)) return;
    this.over.add(i);
    const before = reel.bounds().to;
    try {
      await this.facts();
      await reel.load();
    } catch (err) {
      this.owner.failed(err);
    }
    reel.info.live = false;
    if (reel.info.duration_ns > before) this.owner.grown(i, before);
    this.owner.changed(i);
    this.owner.ended(i);
    if (this.over.size === this.reels.length) clearInterval(this.asking);
  }

  private async facts() {
    const { reels } = await loadInfo();
    this.reels.forEach((r, i) => {
      if (!reels[i]) return;
      const { duration_ns } = r.info;
      // What the lanes show is as long as the last event said.
      r.info = { ...reels[i], duration_ns: this.over.has(i) ? reels[i].duration_ns : duration_ns };
      this.owner.changed(i);
    });
  }

  private async reload() {
    for (const [i, reel] of this.reels.entries()) {
      try {
        await reel.load();
        reel.info.calls = reel.lanes.reduce((n, l) => n + l.calls, 0);
        this.owner.changed(i);
      } catch (err) {
        this.owner.failed(err);
      }
    }
  }
}
