// Functions that were off: their calls were not recorded for some time, for what that costs.

import { el } from "./dom";
import { count, duration, percent, plural, since } from "./format";
import { shown } from "./names";
import type { Budget, FunctionRow, Offs } from "./types";

const most = 3; // that are named

function named(off: Offs): string {
  const names = off.longest.slice(0, most).map((f) => shown(f.name, 60));
  return names.join(", ") + (off.functions > names.length ? `, and ${count(off.functions - names.length)} more` : "");
}

/** offNote says how many functions were not recorded in a range for some time, and which; null if all were. */
export function offNote(off: Offs | null | undefined, budget: Budget | undefined): HTMLElement | null {
  if (!off) return null;
  const lines = off.longest.map((f) => `${shown(f.name, 200)}: off for ${duration(f.off_ns)}, ${percent(f.off_share)}${f.estimated_calls ? `, about ${plural(f.estimated_calls, "call")}` : ""}`);
  if (off.functions > lines.length) lines.push(`and ${count(off.functions - lines.length)} more`);
  const share =
    budget && (budget.calls_recorded_share || budget.time_recorded_share)
      ? ` Budget ${percent(budget.wanted)}: ${percent(budget.calls_recorded_share ?? 0)} of calls and ${percent(budget.time_recorded_share ?? 0)} of the time of functions are recorded.`
      : "";
  return el(
    "p",
    { class: "off-note", role: "note", title: lines.join("\n") },
    `${plural(off.functions, "function")} ${off.functions === 1 ? "was" : "were"} not recorded for some time in this range: `,
    el("span", { class: "name" }, named(off)),
    `. Time in their calls counts as their callers’.${share}`,
  );
}

/** offMark stands behind a function's name in tables. */
export function offMark(r: FunctionRow): HTMLElement | null {
  if (!r.off_ns) return null;
  const about = r.estimated_calls ? `\nabout ${plural(r.estimated_calls, "call")} then` : "";
  return el("span", { class: "off-mark", title: `its calls were not recorded for ${duration(r.off_ns)} of this time, for what that costs${about}` }, `off ${percent(r.off_share ?? 0)}`);
}

/** offTimes lists from when to when one function was off. */
export function offTimes(off: Offs | null): HTMLElement | null {
  if (!off?.times?.length) return null;
  return el(
    "section",
    { class: "off-times", "aria-label": "When it was off" },
    el("h3", {}, "Off"),
    el(
      "ul",
      {},
      ...off.times.map((t) => el("li", {}, `off from ${duration(since(t.from_ns))} to ${duration(since(t.to_ns))}`, el("span", { class: "quiet" }, ` for ${duration(t.to_ns - t.from_ns)}${t.estimated ? `, about ${plural(t.estimated, "call")}` : ""}`))),
      off.more ? el("li", { class: "quiet" }, `and ${count(off.more)} more times`) : null,
    ),
  );
}

/** offWhile says which functions were off while a call ran. */
export function offWhile(off: Offs | null | undefined): string {
  if (!off) return "";
  return `${plural(off.functions, "function")} ${off.functions === 1 ? "was" : "were"} off while it ran: ${named(off)}. Their calls are not seen in it`;
}
