// Fetches and reads answers beside the page's own thread, which the many megabytes of one would hold up.

import type { Grid } from "./columns";
import { buffersOf, type Lanes } from "./decode";
import { view } from "./request";

/** Asked is what the page says to the worker. */
export interface Asked {
  id: number;
  wish?: { url: string; grid: Grid }; // absent: what was asked for is given up
}

/** Loaded is what a worker says of an answer: what it holds, or why there is none. */
export interface Loaded {
  id: number;
  lanes?: Lanes;
  coarse?: boolean;
  unsummed?: boolean;
  error?: string;
}

const running = new Map<number, AbortController>();

async function load(id: number, url: string, grid: Grid) {
  const stop = new AbortController();
  running.set(id, stop);
  try {
    const { lanes, coarse, unsummed } = await view(url, grid, stop.signal);
    if (stop.signal.aborted) return;
    const said: Loaded = { id, lanes, coarse, unsummed };
    self.postMessage(said, { transfer: buffersOf(lanes) });
  } catch (err) {
    const said: Loaded = { id, error: String((err as Error).message ?? err) };
    self.postMessage(said);
  } finally {
    running.delete(id);
  }
}

self.addEventListener("message", ({ data: { id, wish } }: MessageEvent<Asked>) => {
  if (wish === undefined) running.get(id)?.abort();
  else void load(id, wish.url, wish.grid);
});
