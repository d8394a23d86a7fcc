// What is said of a place of the lanes at which nothing is painted.

import { missingIn } from "./dump";
import { count, duration } from "./format";
import type { Slot } from "./layout";
import { shown } from "./names";
import { offHere } from "./off";
import { runAt, type OffSource } from "./offsource";
import { gapsOf } from "./paint";
import type { Source } from "./source";
import type { Dump, Pause } from "./types";
import type { Span } from "./viewport";

/** Blank is what a timeline knows of such places. */
export interface Blank {
  source: Source;
  visible: Span;
  dump: Dump | null;
  pauses: Pause[];
  offs: OffSource;
}

/** blankLines tell why there may be nothing: recording was paused, events are missing, or what is looked for was off. */
export function blankLines(b: Blank, at: number, slot: Slot | null | undefined): string[] {
  const pause = b.pauses.find((p) => p.from_ns <= at && at <= p.to_ns && (!p.pid || p.pid === slot?.lane.pid));
  if (pause) return [`paused for ${duration(pause.to_ns - pause.from_ns)}`, `nothing was recorded here${pause.by ? `: the ${shown(pause.by, 40)} asked for that` : ""}`];
  const gap = slot && gapsOf(b.source.answers, slot.lane.id, b.visible).find((g) => g.from <= at && at <= g.to);
  if (gap && gap.events === 0 && missingIn(b.dump, slot.lane.id, { from: at, to: at })) return ["missing from the dump", "what was called here was not kept"];
  if (gap) return [gap.events > 0 ? `${count(gap.events)} events lost` : "events lost", "what was called here is not known"];
  const off = b.offs.looksFor && b.offs.view ? runAt(b.offs.found, at) : null;
  return off ? offHere(b.offs.view!, off) : [];
}
