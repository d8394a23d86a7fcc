// Fetches answers beside the page's own thread, which the many megabytes of one would hold up.

import { view } from "./request";

/** Asked is what the page says to the worker. */
export interface Asked {
  id: number;
  url?: string; // absent: what was asked for is given up
}

/** Loaded is what a worker says of an answer: its bytes, or why there are none. */
export interface Loaded {
  id: number;
  buffer?: ArrayBuffer;
  coarse?: boolean;
  error?: string;
}

const running = new Map<number, AbortController>();

async function load(id: number, url: string) {
  const stop = new AbortController();
  running.set(id, stop);
  try {
    const { buffer, coarse } = await view(url, stop.signal);
    const said: Loaded = { id, buffer, coarse };
    self.postMessage(said, { transfer: [buffer] });
  } catch (err) {
    const said: Loaded = { id, error: String((err as Error).message ?? err) };
    self.postMessage(said);
  } finally {
    running.delete(id);
  }
}

self.addEventListener("message", ({ data: { id, url } }: MessageEvent<Asked>) => {
  if (url === undefined) running.get(id)?.abort();
  else void load(id, url);
});
