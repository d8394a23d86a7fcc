// The two buttons that pause a recording in progress and go on with it, and what is said of that.

import { el } from "./dom";
import { duration } from "./format";
import { post } from "./request";
import type { Reel } from "./reel";
import type { Pause } from "./types";

/** pausedSince is the pause of a recording in progress that goes on, if there is one. */
export function pausedSince(live: boolean, pauses: Pause[]): Pause | null {
  return (live && pauses.find((p) => p.open)) || null;
}

// How long what was asked for is believed before the recording itself says so, which may be busy. ms
const believed = 10_000;

export class Pausing {
  private pause = el("button", { class: "pause", title: "P", onclick: () => void this.ask(true) }, "Pause");
  private resume = el("button", { class: "resume", title: "P", onclick: () => void this.ask(false) }, "Resume");
  readonly element = el("div", { class: "segments pausing", role: "group", "aria-label": "Recording", hidden: true }, this.pause, this.resume);
  private asked: boolean | null = null; // what is awaited
  private until = 0; // performance.now() to which what was asked for is believed
  private was: boolean | null = null; // and what that is

  /** possible says that the server takes it from here. */
  constructor(
    private reel: Reel,
    private possible: boolean,
    private owner: { failed(err: unknown): void; say(text: string): void; changed(): void },
  ) {}

  /** paused says that nothing is being recorded. */
  paused(): boolean {
    const told = pausedSince(this.reel.info.live, this.reel.marks?.pauses ?? []) !== null;
    if (this.was === told || performance.now() > this.until) this.was = null;
    return this.was ?? told;
  }

  /** badge says how the recording in progress is. */
  badge(): HTMLElement | false {
    if (!this.reel.info.live) return false;
    if (!this.paused()) return el("span", { class: "badge live" }, "recording");
    const p = pausedSince(true, this.reel.marks?.pauses ?? []);
    const by = p?.by ? `the ${p.by === "page" ? "page" : p.by === "program" ? "program" : "command"} asked for that` : "";
    return el("span", { class: "badge paused", title: by }, p ? `paused since ${duration(p.from_ns)}` : "paused");
  }

  /** show brings the buttons to what is known. */
  show() {
    const there = this.possible && this.reel.info.live;
    this.element.hidden = !there;
    if (!there) return;
    const paused = this.paused();
    this.pause.disabled = this.asked !== null || paused;
    this.resume.disabled = this.asked !== null || !paused;
  }

  toggle() {
    if (this.possible && this.reel.info.live && this.asked === null) void this.ask(!this.paused());
  }

  private async ask(pause: boolean) {
    if (this.asked !== null) return;
    this.asked = pause;
    this.show();
    try {
      await post(pause ? "api/pause" : "api/resume");
      [this.was, this.until] = [pause, performance.now() + believed];
      this.owner.say(pause ? "The recording is paused." : "The recording goes on.");
    } catch (err) {
      this.owner.failed(err);
    }
    this.asked = null;
    this.owner.changed();
  }
}
