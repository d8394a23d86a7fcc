// Functions that were off: their calls were not recorded for some time, for what that costs.

import type { Api } from "./api";
import { el, replace, type Child } from "./dom";
import { count, duration, percent, plural, since } from "./format";
import { shown } from "./names";
import { offText } from "./offlist";
import type { Span } from "./viewport";
import type { Budget, DiffOff, DiffRow, FunctionRow, Offs, OffRun, OffView } from "./types";

const most = 3; // that are named

function named(off: Offs): string {
  const names = off.longest.slice(0, most).map((f) => shown(f.name, 60));
  return names.join(", ") + (off.functions > names.length ? `, and ${count(off.functions - names.length)} more` : "");
}

const listed = 1000; // that are listed when asked for

/** offMore is a note that opens to the list of all functions that were off in a range. */
function offMore(api: Api, range: Span, className: string, ...summary: Child[]): HTMLElement {
  const list = el("ul", {});
  const details = el("details", { class: `off-more ${className}` }, el("summary", {}, ...summary), list);
  details.addEventListener("toggle", () => {
    if (!details.open || list.childElementCount > 0) return;
    replace(list, el("li", { class: "quiet" }, "…"));
    api
      .json<Offs | null>("offs", { from: Math.floor(range.from), to: Math.ceil(range.to), limit: listed })
      .then((off) => {
        const lines = (off?.longest ?? []).map((f) => el("li", {}, el("span", { class: "name" }, shown(f.name, 200)), el("span", { class: "quiet" }, ` ${offText(f)}, ${percent(f.off_share)} of it`)));
        const rest = (off?.functions ?? 0) - lines.length;
        replace(list, ...lines, rest > 0 && el("li", { class: "quiet" }, `and ${count(rest)} more`));
      })
      .catch((err) => replace(list, el("li", { class: "failure", role: "alert" }, String((err as Error).message))));
  });
  return details;
}

/** offNote says how many functions were not recorded in a range for some time, and which, on demand all of them; null if all were recorded. */
export function offNote(api: Api, range: Span, off: Offs | null | undefined, budget: Budget | undefined): HTMLElement | null {
  if (!off) return null;
  const share =
    budget && (budget.calls_recorded_share || budget.time_recorded_share)
      ? ` Budget ${percent(budget.wanted)}: ${percent(budget.calls_recorded_share ?? 0)} of calls and ${percent(budget.time_recorded_share ?? 0)} of the time of functions are recorded.`
      : "";
  return offMore(
    api,
    range,
    "off-note",
    `${plural(off.functions, "function")} ${off.functions === 1 ? "was" : "were"} not recorded for some time in this range: `,
    el("span", { class: "name" }, named(off)),
    `. Time in their calls counts as their callers’.${share}`,
  );
}

/** offMark stands behind a function's name in tables. */
export function offMark(r: FunctionRow): HTMLElement | null {
  if (!r.off_ns) return null;
  const about = r.estimated_calls ? `\nabout ${plural(r.estimated_calls, "call")} then` : "";
  return el("span", { class: "off-mark", title: `its calls were not recorded for ${duration(r.off_ns)} of this time, for what that costs: there were more${about}` }, `off ${percent(r.off_share ?? 0)}`);
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
  return `${plural(off.functions, "function")} ${off.functions === 1 ? "was" : "were"} off while it ran: ${named(off)}. Their calls are not seen in it: its own time may be theirs`;
}

/** offWhileMore is the same, with a list of all of them on demand. */
export function offWhileMore(api: Api, range: Span, off: Offs): HTMLElement {
  return offMore(api, range, "off-while", offWhile(off));
}

/** callsOf writes how many calls of a function were recorded: where it was off there may have been more. */
export function callsOf(calls: number, off: boolean, estimated?: number): Child {
  if (!off) return count(calls);
  const about = estimated ? `, and about ${plural(estimated, "call")} while it was off` : "";
  return el("span", { class: "at-least", title: `${plural(calls, "call")} recorded${about || "; it was off for some time, when there may have been more"}` }, `≥ ${count(calls)}`);
}

/** offHere are the lines that tell that what is looked for was off at a place. */
export function offHere(view: OffView, run: OffRun): string[] {
  const what = view.name !== undefined ? `${shown(view.name, 120)} was off here` : `${plural(run[2], "function")} that ${run[2] === 1 ? "was" : "were"} found ${run[2] === 1 ? "was" : "were"} off here`;
  return [what, `from ${duration(since(run[0]))} to ${duration(since(run[1]))}; calls were not recorded`];
}

/** offEither says in which of two reels a function was off; null if in none. */
export function offEither(r: DiffRow): HTMLElement | null {
  if (!r.off_a && !r.off_b) return null;
  const where = r.off_a && r.off_b ? "both" : r.off_a ? "A" : "B";
  return el("span", { class: "off-mark", title: `its calls were not recorded for some time in ${where}, for what that costs: how many it had there isn’t known` }, `off in ${where}`);
}

/** offBoth says how many functions were off in either of two reels; null if none was. */
export function offBoth(off: DiffOff | undefined): HTMLElement | null {
  if (!off) return null;
  const side = (n: number, name: string) => n > 0 && `in ${name} ${plural(n, "function")} ${n === 1 ? "was" : "were"} off for some time`;
  const both = [side(off.functions_a, "A"), side(off.functions_b, "B")].filter(Boolean).join(", ");
  const part = off.off_ns ? ` Of the difference, ${off.off_ns > 0 ? "+" : ""}${duration(off.off_ns)} is of functions that were off in one of them: what it comes from isn’t known.` : "";
  const text = `${both[0].toUpperCase()}${both.slice(1)}: their calls then were not recorded, and their time counts as their callers’. They are not gone.${part}`;
  return el("p", { class: "off-note", role: "note" }, text);
}
