// A request and what may come of it.

import type { Grid } from "./columns";
import { Reader, type Lanes } from "./decode";

/** get is an answer of the server; what it says instead of one is the error's message. */
export function get(url: string, signal?: AbortSignal): Promise<Response> {
  return answer(url, { signal, cache: "no-store" });
}

/** post asks the server to change something. */
export function post(url: string): Promise<Response> {
  return answer(url, { method: "POST", cache: "no-store" });
}

async function answer(url: string, how: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(url, how);
  } catch (err) {
    if (how.signal?.aborted) throw err;
    throw new Error("callreel view does not answer; is it still running?");
  }
  if (response.ok) return response;
  const said = await response.json().catch(() => null);
  throw new Error(typeof said?.error === "string" ? said.error : `the server answered ${response.status}`);
}

/** Viewed is an answer of api/view; a coarse one is given at once, merged more than asked for, and an unsummed one without some threads' states. */
export interface Viewed {
  lanes: Lanes;
  coarse: boolean;
  unsummed: boolean;
}

export async function view(url: string, grid: Grid, signal: AbortSignal): Promise<Viewed> {
  const r = await get(url, signal);
  const reader = new Reader(grid);
  if (r.body) {
    const chunks = r.body.getReader();
    for (let c = await chunks.read(); !c.done; c = await chunks.read()) reader.push(c.value);
  }
  return { lanes: reader.end(), coarse: r.headers.has("Callreel-Pixels"), unsummed: r.headers.has("Callreel-States") };
}
