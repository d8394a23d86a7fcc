// The bars of a view. Only what the screen shows is asked for, with a margin;
// older answers stay, to be drawn in their new places until the newer ones come.

import type { Grid } from "./columns";
import { bytesOf, type Lanes } from "./decode";
import { firstTrack, type Stretch } from "./layout";
import type { Viewed } from "./request";
import type { Span } from "./viewport";

export interface Answer {
  span: Span;
  nsPerPixel: number;
  rows: Map<number, Stretch>;
  lanes: Lanes;
  grid: Grid; // of its columns
  bytes: number; // about
  coarse: boolean; // given at once, merged more than asked for: the exact one is asked for next
  unsummed: boolean; // states of some threads are left out: it is asked for again once they are summed up
}

type Query = Omit<Answer, "lanes" | "coarse" | "unsummed" | "grid" | "bytes">;

// A request that failed is made again, but not at once.
const retryAfter = 2000; // ms

/** A fetch of api/view. */
export type Load = (params: string, grid: Grid, signal: AbortSignal) => Promise<Viewed>;

// How many answers are kept, that of the whole recording among them, and of how many bytes unless there are but two.
const kept = 3;
const keptBytes = 64 << 20;

export class Source {
  answers: Answer[] = []; // coarse ones first
  requests = 0;
  states = false; // are asked for, too
  failure: unknown = null; // of the last request
  private again = 0; // when one that failed may be asked for again, ms
  private byAge: Answer[] = [];
  private running: { query: Query; stop: AbortController } | null = null;
  private wanted: [Span, number, Stretch[], Stretch[], Span] | null = null;

  constructor(
    private load: Load,
    private arrived: () => void,
    private failed: (err: unknown) => void = () => {},
    private summed: () => Promise<void> = () => Promise.resolve(),
  ) {}

  get pending(): boolean {
    return this.running !== null;
  }

  /** want sees to it that the rows of the visible range are there, nsPerPixel fine; ahead are the rows to ask for if not. */
  want(visible: Span, nsPerPixel: number, rows: Stretch[], ahead: Stretch[], bounds: Span) {
    this.wanted = [visible, nsPerPixel, rows, ahead, bounds];
    if (rows.length === 0 || performance.now() < this.again) return;
    const covering = this.byAge.filter((a) => covers(a, visible, nsPerPixel, rows, bounds));
    if (covering.some((a) => !a.coarse)) return;
    if (covering.length > 0) {
      if (!this.running) this.request(covering[covering.length - 1], false);
      return;
    }
    if (this.running) {
      const q = this.running.query;
      if (covers(q, visible, nsPerPixel, rows, bounds) || !outdated(q, visible, nsPerPixel)) return;
      this.running.stop.abort();
    }
    this.request(withMargin(visible, nsPerPixel, ahead, bounds), true);
  }

  /** cutAt forgets what lies after the instant: a recording in progress has grown there. */
  cutAt(at: number) {
    for (const a of this.byAge) if (a.span.to > at) a.span = { from: a.span.from, to: Math.max(at, a.span.from) };
  }

  clear() {
    this.running?.stop.abort();
    this.running = null;
    this.answers = [];
    this.byAge = [];
  }

  private request({ span, nsPerPixel, rows }: Query, quick: boolean) {
    const query = { span, nsPerPixel, rows };
    const stop = new AbortController();
    const running = { query, stop };
    this.running = running;
    this.requests++;
    const width = Math.max(1, Math.round((query.span.to - query.span.from) / query.nsPerPixel));
    const all = [...query.rows.values()];
    const lanes = all.filter((r) => r.lane < firstTrack).map((r) => `${r.lane}:${r.first}:${r.count}`).join(",");
    const spans = all.flatMap((r) => (r.spans ? [`${r.lane}:${r.spans.first}:${r.spans.count}`] : [])).join(",");
    const grid = { ...query.span, width };
    this.load(`from=${grid.from}&to=${grid.to}&width=${width}&lanes=${lanes}${spans ? `&spans=${spans}` : ""}${this.states ? "&states=1" : ""}${quick ? "&quick=1" : ""}`, grid, stop.signal)
      .then(({ lanes, coarse, unsummed }) => {
        if (this.running !== running) return;
        const a = { ...query, grid, lanes, bytes: bytesOf(lanes), coarse: quick && coarse, unsummed };
        this.keep(a);
        if (unsummed) void this.summed().then(() => this.askAgain(a));
        this.failure = null;
        this.done();
      })
      .catch((err) => {
        if (this.running !== running || stop.signal.aborted) return;
        this.failure = err;
        this.running = null;
        this.again = performance.now() + retryAfter;
        setTimeout(() => this.arrived(), retryAfter + 1);
        this.failed(err);
        this.arrived();
      });
  }

  // The states of its threads are to be had by now.
  private askAgain(a: Answer) {
    if (!this.byAge.includes(a)) return;
    a.coarse = true;
    this.arrived();
  }

  private done() {
    this.running = null;
    this.arrived();
    if (this.wanted) this.want(...this.wanted);
  }

  private keep(a: Answer) {
    // The exact answer takes the coarse one's place.
    this.byAge = this.byAge.filter((b) => b.span !== a.span);
    this.byAge.push(a);
    // The widest one is kept as well, to have something to show when zooming out.
    const widest = this.byAge.reduce((w, b) => (b.span.to - b.span.from >= w.span.to - w.span.from ? b : w));
    const bytes = () => this.byAge.reduce((sum, b) => sum + b.bytes, 0);
    while (this.byAge.length > kept || (this.byAge.length > 2 && bytes() > keptBytes)) {
      this.byAge.splice(this.byAge[0] === widest ? 1 : 0, 1);
    }
    this.answers = [...this.byAge].sort((x, y) => y.nsPerPixel - x.nsPerPixel);
  }
}

function covers(q: Query, w: Span, nsPerPixel: number, rows: Stretch[], bounds: Span): boolean {
  if (q.nsPerPixel > nsPerPixel * 1.02 || q.nsPerPixel < nsPerPixel / 2.5) return false;
  // A part of the margin is to be left, else the next one is asked for ahead.
  const margin = (w.to - w.from) * 0.15;
  if (q.span.from > Math.max(bounds.from, w.from - margin) || q.span.to < Math.min(bounds.to, w.to + margin)) return false;
  return rows.every((r) => {
    const has = q.rows.get(r.lane);
    if (has === undefined || (r.spans && !(has.spans && has.spans.first <= r.spans.first && has.spans.first + has.spans.count >= r.spans.first + r.spans.count))) return false;
    return r.count === 0 || (has.first <= r.first && has.first + has.count >= r.first + r.count);
  });
}

// A request that is on its way is of use unless it is far from what is wanted.
function outdated(q: Query, w: Span, nsPerPixel: number): boolean {
  const ratio = q.nsPerPixel / nsPerPixel;
  return ratio > 2 || ratio < 0.5 || q.span.to <= w.from || q.span.from >= w.to;
}

function withMargin(w: Span, nsPerPixel: number, rows: Stretch[], bounds: Span): Query {
  const margin = (w.to - w.from) * 0.5;
  const span = {
    from: Math.max(bounds.from, Math.floor(w.from - margin)),
    to: Math.min(Math.ceil(bounds.to), Math.ceil(w.to + margin)),
  };
  if (span.to <= span.from) span.to = span.from + 1;
  return { span, nsPerPixel, rows: new Map(rows.map((r) => [r.lane, r])) };
}
