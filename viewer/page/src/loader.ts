// Answers of api/view, which a worker fetches.

import type { Grid } from "./columns";
import type { Asked, Loaded } from "./load.worker";
import { view, type Viewed } from "./request";

interface Wish {
  url: string;
  grid: Grid;
  signal: AbortSignal;
  done(a: Viewed | Promise<Viewed>): void;
  failed(err: unknown): void;
}

export class Loader {
  private worker: Worker | null;
  private wishes = new Map<number, Wish>();
  private last = 0;

  constructor() {
    this.worker = start();
    this.worker?.addEventListener("message", ({ data }: MessageEvent<Loaded>) => this.loaded(data));
    this.worker?.addEventListener("error", () => this.fallBack());
  }

  // Where no worker may run, or it fails, the page fetches.
  private fallBack() {
    this.worker?.terminate();
    this.worker = null;
    for (const w of this.wishes.values()) w.done(view(w.url, w.grid, w.signal));
    this.wishes.clear();
  }

  view(path: string, grid: Grid, signal: AbortSignal): Promise<Viewed> {
    const url = new URL(path, document.baseURI).href; // the worker's own is another
    if (!this.worker) return view(url, grid, signal);
    const id = ++this.last;
    this.tell({ id, wish: { url, grid } });
    return new Promise((done, failed) => {
      this.wishes.set(id, { url, grid, signal, done, failed });
      signal.addEventListener("abort", () => this.giveUp(id), { once: true });
    });
  }

  private tell(a: Asked) {
    this.worker?.postMessage(a);
  }

  private giveUp(id: number) {
    const w = this.wishes.get(id);
    if (!w) return;
    this.wishes.delete(id);
    this.tell({ id });
    w.failed(w.signal.reason);
  }

  private loaded({ id, lanes, coarse, unsummed, error }: Loaded) {
    const w = this.wishes.get(id);
    if (!w) return;
    this.wishes.delete(id);
    if (lanes) w.done({ lanes, coarse: coarse === true, unsummed: unsummed === true });
    else w.failed(new Error(error));
  }
}

function start(): Worker | null {
  try {
    return new Worker("assets/load.js");
  } catch {
    return null;
  }
}
