// What the timeline draws at a place, and whom it tells of what is done there.

import type { SaidBar } from "./said";
import type { Span } from "./viewport";

/** Bar is what is drawn at a place: a call, or several merged ones. */
export interface Bar {
  lane: number;
  row: number;
  start: number;
  duration: number;
  busy: number;
  func: number;
  calls: number;
}

/** What a timeline tells its owner. */
export interface Listener {
  moved(): void; // visible range, scroll or rows
  selected(bar: Bar | null, at: number): void;
  ranged(range: Span | null): void;
  lane(lane: number): void;
  find?(name: string): void; // its calls, and when it was off
  state?(lane: number, at: number): void; // a place in a row of states
  said?(bar: SaidBar, at: number): void; // what the program said
  painted?(): void;
  hovered(bar: Bar | null): void;
  colorKey(func: number): string | undefined;
  failed(err: unknown): void; // an answer did not come
}
