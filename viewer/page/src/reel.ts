// One opened recording: its requests, names, lanes.

import { Api, Names } from "./api";
import { percent } from "./format";
import { title } from "./layout";
import type { Call, Dump, Info, Lane, Marks, ReelInfo, Track } from "./types";
import type { Place } from "./urlstate";
import type { Bar } from "./timeline";
import type { Span } from "./viewport";

export class Reel {
  readonly api: Api;
  readonly names: Names;
  readonly titles: Names; // of what the program said
  marks: Marks | null = null;
  info: ReelInfo;
  lanes: Lane[] = [];
  dump: Dump | null = null;
  /** earlier says that what is before a dump's window is shown, too: it may be long, and is nearly empty. */
  earlier = false;
  // Before its first call a recording has nothing to show: that is getting ready.
  private first = 0;

  constructor(info: Info, readonly index: number, namesArrived: () => void, private marksArrived: () => void = () => {}) {
    this.info = info.reels[index];
    this.api = new Api(info, index);
    this.names = new Names(this.api, namesArrived);
    this.titles = new Names(this.api, namesArrived, "titles");
  }

  async load() {
    this.lanes = await this.api.json<Lane[]>("lanes");
    await this.loadMarks();
    if (this.info.dump) {
      this.dump = await this.api.json<Dump | null>("dump");
      this.first = 0;
      return;
    }
    this.first = 0;
    if (this.saying) return; // that may be before the first call
    const first = this.lanes.reduce((t, l) => (l.calls > 0 ? Math.min(t, l.start_ns) : t), Infinity);
    this.first = first > this.info.duration_ns * 0.02 && first < this.info.duration_ns ? Math.floor(first) : 0;
  }

  // What the program said may take the server some seconds: calls are shown meanwhile.
  private async loadMarks() {
    clearTimeout(this.waiting);
    const m = await this.api.json<Marks>("marks").catch(() => null);
    if (!m) return;
    this.saying = m.state !== "none";
    this.reading = m.state === "pending" ? m.progress : null;
    if (m.state === "pending") {
      this.waiting = window.setTimeout(() => void this.loadMarks().then(() => this.marksArrived()), 400);
      if (this.marks) this.spread(this.marks);
      return;
    }
    this.spread((this.marks = m));
  }
  /** reading is how much of what the program said the server has read; null once that is all. */
  reading: number | null = null;
  private waiting = 0;
  private saying = false; // the program said something, or was paused

  private spread(m: Marks) {
    for (const [lane, rows, , instants] of m.lanes) {
      const l = this.lanes[lane]; // they are in order of their IDs
      if (l) [l.spans, l.instants] = [rows, instants];
    }
  }

  /** rows are lanes with the tracks of what the program said. */
  rows(): Lane[] {
    return [...(this.marks?.tracks ?? []).map(laneOf), ...this.lanes];
  }

  /** hasStates says that it is known of some threads when they ran and waited. */
  get hasStates(): boolean {
    return this.info.scheduling?.states === true;
  }

  /** later says what isn't there yet, in words; "" if everything is. */
  later(): string {
    return [this.info.scheduling?.summing ? "states are being summed up" : "", this.reading !== null ? `markers are being read: ${percent(this.reading)}` : ""].filter(Boolean).join(", ");
  }

  bounds(): Span {
    const from = this.before() > 0 && !this.earlier ? this.dump!.from_ns : this.first;
    return { from, to: Math.max(from + 1, this.info.duration_ns) };
  }

  /** before is how much there is before a dump's window, unless that is too little to matter. */
  before(): number {
    const d = this.dump;
    return d && d.to_ns > d.from_ns && d.from_ns > (d.to_ns - d.from_ns) * 0.1 ? d.from_ns : 0;
  }

  laneTitle(id: number): string {
    const track = this.marks?.tracks.find((t) => t.id === id);
    if (track) return track.name;
    const lane = this.lanes.find((l) => l.id === id);
    return lane ? `${title(lane)} (${lane.kind === "goroutine" ? "goroutine " + lane.goroutine : lane.tid})` : `lane ${id}`;
  }

  /** callIn is the call that a bar shows: of a merged one the call at the instant, however narrow, else the first. */
  async callIn(bar: Bar, at: number): Promise<Call | null> {
    const place = { lane: bar.lane, row: bar.row };
    if (bar.calls === 1) return this.call({ ...place, at: bar.start + bar.duration / 2 });
    const pointed = await this.call({ ...place, at: Math.min(Math.max(at, bar.start), bar.start + bar.duration) });
    return pointed ?? this.call({ ...place, at: Math.ceil(bar.start) });
  }

  call(p: Place, signal?: AbortSignal): Promise<Call | null> {
    return this.whole("call", { lane: p.lane, row: p.row, at: Math.floor(p.at) }, signal);
  }

  /** whole asks for one call, which comes with its callers. */
  async whole(path: "call" | "next" | "first", params: Record<string, string | number>, signal?: AbortSignal): Promise<Call | null> {
    const c = await this.api.json<Call | null>(path, params, signal);
    if (c) c.callers ??= [];
    return c;
  }
}

// A track stands among lanes.
function laneOf(t: Track): Lane {
  return {
    id: t.id, tid: 0, pid: t.pid ?? 0, goroutine: 0, name: t.name, kind: "track", calls: 0, rows: 0, start_ns: 0, end_ns: 0, dropped: 0,
    spans: t.kind === "counter" ? 0 : t.rows, instants: t.instants ?? 0, track: t,
  };
}
