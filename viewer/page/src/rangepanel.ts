// What there is in the selected range: functions, and what the program said.

import { debounce, el, replace } from "./dom";
import { count, duration, plural, since } from "./format";
import { FunctionTable, matcher } from "./functions";
import type { Owner } from "./lanestab";
import { offNote } from "./off";
import { Progress } from "./progress";
import { RangeTables } from "./rangetables";
import type { Reel } from "./reel";
import { bySwitch } from "./split";
import type { Timeline } from "./timeline";
import type { Call, FunctionRow, Offs } from "./types";
import type { ViewState } from "./urlstate";
import { length, type Span } from "./viewport";

export class RangePanel {
  readonly element: HTMLElement;
  private title = el("span", { class: "range-title" });
  private off = el("div", { class: "off-notes" });
  private bySwitch = el("span", {});
  private functions = new FunctionTable("Functions in the range", (r) => this.choose(r));
  private tables: RangeTables;
  private key = "";
  private stop: AbortController | null = null;

  constructor(
    private reel: Reel,
    private timeline: Timeline,
    private owner: Owner,
    private act: { call(c: Call): void; title(title: number): void },
  ) {
    this.tables = new RangeTables(() => reel.api, {
      choose: (ranged) => owner.change({ ranged }, true),
      title: (title) => act.title(title),
      track: (track) => {
        const r = timeline.range;
        if (r) owner.change({ mark: { kind: "value", lane: track, row: 0, at: Math.floor(r.to - 1) }, selected: null }, true);
      },
      failed: (err) => owner.failed(err),
    });
    const filter = el("input", { type: "search", placeholder: "filter", "aria-label": "Filter functions of the range" });
    const filtered = () => {
      this.functions.filter(matcher(filter.value));
      this.tables.filter(matcher(filter.value));
    };
    filter.addEventListener("input", debounce(filtered, 120));
    this.element = el(
      "div",
      { class: "panel-range", role: "tabpanel", hidden: true },
      el(
        "div",
        { class: "panel-bar" },
        this.title,
        this.tables.chooser,
        this.bySwitch,
        filter,
        el("button", { onclick: () => timeline.range && timeline.fit(timeline.range) }, "Fit"),
        el("button", { onclick: () => owner.change({ tab: "flame", scope: "range" }, true) }, "Flame graph"),
        el("button", { onclick: () => owner.change({ tab: "tree", scope: "range" }, true) }, "Call tree"),
        el("button", { onclick: () => owner.change({ range: null }, true) }, "Let go"),
      ),
      this.off,
      this.functions.element,
      this.tables.element,
    );
  }

  /** show shows the table that is chosen. */
  show(s: ViewState) {
    const { reel } = this;
    const said = reel.marks?.state === "ready" && reel.marks.marks > 0;
    this.functions.showBy(reel.hasStates ? s.by : "wall", reel.hasStates);
    this.tables.show(s.ranged, s.range, said);
    this.functions.element.hidden = said && s.ranged !== "functions";
    replace(this.bySwitch, reel.hasStates && !this.functions.element.hidden && bySwitch(s.by, (by) => this.owner.change({ by }, true)));
  }

  private choose(r: FunctionRow) {
    if (r.func === 0) return;
    const range = this.timeline.range;
    this.reel.api
      .json<{ calls: Call[] | null }>("calls", { f: r.func, sort: "longest", limit: 1, ...(range ? { from: range.from, to: range.to } : {}) })
      .then(({ calls }) => calls?.[0] && this.act.call(calls[0]))
      .catch((err) => this.owner.failed(err));
  }

  /** apply takes the range, and says whether it is another one. */
  apply(r: Span | null): "same" | "other" | "gone" {
    const key = r ? `${r.from}-${r.to}` : "";
    if (key === this.key) return "same";
    this.key = key;
    this.stop?.abort();
    this.timeline.draw();
    if (!r) return "gone";
    const stop = (this.stop = new AbortController());
    replace(this.title, el("strong", {}, duration(length(r))), el("span", { class: "quiet" }, ` from ${duration(since(r.from))} · `));
    this.functions.wait();
    replace(this.off);
    const progress = new Progress(() => this.owner.change({ range: null }, true));
    this.title.append(progress.element);
    this.reel.api
      .json<{ functions: FunctionRow[] | null; off?: Offs }>("functions", { from: r.from, to: r.to, lanes: "all", ticket: progress.ticket }, stop.signal)
      .finally(() => progress.end())
      .then(({ functions, off }) => {
        replace(this.off, offNote(this.reel.api, r, off, this.reel.info.budget));
        const rows = functions ?? [];
        this.functions.set(rows);
        const calls = rows.reduce((n, f) => n + f.calls, 0);
        replace(
          this.title,
          el("strong", {}, duration(length(r))),
          el("span", { class: "quiet" }, ` from ${duration(since(r.from))} · ${plural(calls, "call")} of ${count(rows.length)} functions`),
        );
      })
      .catch((err) => stop.signal.aborted || this.owner.failed(err));
    return "other";
  }
}
