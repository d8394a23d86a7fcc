// What the server tells by itself: how far indexing is, and that a recording in progress has grown.

export interface Events {
  progress(share: number): void;
  grown(reel: number, durationNS: number, data: Record<string, unknown>): void;
  closed(reel: number): void;
  analysis?(ticket: string, share: number): void; // how far a request with that ticket is
  answers?(does: boolean): void; // whether the server is there
}

/** listenTo opens api/events; it ends with the page, or by close. */
export function listenTo(e: Events): EventSource {
  const source = new EventSource("api/events");
  const on = (name: string, act: (data: Record<string, unknown>) => void) =>
    source.addEventListener(name, (m) => {
      try {
        act(JSON.parse((m as MessageEvent<string>).data || "{}"));
      } catch {
        // A line that is no JSON tells nothing.
      }
    });
  const reel = (d: Record<string, unknown>) => (d.reel === 1 ? 1 : 0);
  on("hello", () => e.answers?.(true));
  source.addEventListener("error", () => e.answers?.(false));
  on("analysis", (d) => e.analysis?.(String(d.ticket), Number(d.done) / Math.max(1, Number(d.total))));
  on("progress", (d) => e.progress(Number(d.done) / Math.max(1, Number(d.total))));
  on("grown", (d) => {
    const ns = Number(d.duration_ns);
    if (Number.isFinite(ns)) e.grown(reel(d), ns, d);
  });
  on("closed", (d) => e.closed(reel(d)));
  return source;
}
