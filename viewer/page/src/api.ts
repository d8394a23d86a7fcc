// The requests to callreel view. Everything goes to the server that the page came from.

import { Loader } from "./loader";
import { get } from "./request";
import type { Load } from "./source";
import type { FunctionName, Info } from "./types";

const askEvery = 250; // ms

// One for all reels of the page.
let loader: Loader | null = null;

export class Api {
  constructor(
    readonly info: Info,
    readonly reel: number,
  ) {}

  private url(path: string, params: string): string {
    const reel = this.info.reels.length > 1 ? `reel=${this.reel}` : "";
    return `api/${path}?${[params, reel].filter(Boolean).join("&")}`;
  }

  json<T>(path: string, params: Record<string, string | number> = {}, signal?: AbortSignal): Promise<T> {
    const query = Object.entries(params).map(([k, v]) => `${k}=${encodeURIComponent(v)}`);
    return get(this.url(path, query.join("&")), signal).then((r) => r.json() as Promise<T>);
  }

  view: Load = (params, grid, signal) => (loader ??= new Loader()).view(this.url("view", params), grid, signal);

  /** summed waits until the states of threads are summed up, which the server needs some seconds for of a large reel. */
  summed(): Promise<void> {
    return (this.summing ??= this.untilSummed().finally(() => (this.summing = null)));
  }
  private summing: Promise<void> | null = null;

  private async untilSummed() {
    for (;;) {
      await new Promise((done) => setTimeout(done, askEvery));
      const now = await info().catch(() => null);
      if (now && !now.reels[this.reel]?.scheduling?.summing) return;
    }
  }

  link(path: string, params: Record<string, string | number>): string {
    return this.url(path, Object.entries(params).map(([k, v]) => `${k}=${encodeURIComponent(v)}`).join("&"));
  }
}

export function info(): Promise<Info> {
  return get("api/info").then((r) => r.json() as Promise<Info>);
}

/** Names fetches functions' names as they come to be seen, many at a time. */
export class Names {
  private known = new Map<number, FunctionName>();
  private asked = new Set<number>();
  private queue: number[] = [];
  private busy = false;

  constructor(
    private api: Api,
    private arrived: () => void,
    private path = "names",
  ) {}

  /** get is the name if it is known; otherwise it is asked for. */
  get(func: number): FunctionName | undefined {
    const n = this.known.get(func);
    if (n === undefined && func !== 0) this.ask(func);
    return n;
  }

  /** again asks once more for what may be known by now. */
  again(func: number) {
    this.asked.delete(func);
    this.ask(func);
  }

  private ask(func: number) {
    if (this.asked.has(func)) return;
    this.asked.add(func);
    this.queue.push(func);
    if (!this.busy) {
      this.busy = true;
      // The frame that asks for one asks for all that it shows.
      setTimeout(() => void this.flush(), 0);
    }
  }

  private async flush() {
    while (this.queue.length > 0) {
      const batch = this.queue.splice(0, 400);
      try {
        const got = await this.api.json<Record<string, FunctionName>>(this.path, { ids: batch.join(",") });
        for (const id of batch) this.known.set(id, got[id] ?? { name: "" });
        this.arrived();
      } catch {
        // They are asked for again with the next frame that shows them, but not at once.
        setTimeout(() => {
          batch.forEach((id) => this.asked.delete(id));
          this.arrived();
        }, 2000);
      }
    }
    this.busy = false;
  }
}
