// Two reels: what became slower, and both timelines one above the other.

import { el, replace, type Child } from "./dom";
import { marks } from "./dump";
import { count, duration, plural } from "./format";
import { nameCell, matcher } from "./functions";
import type { LanesTab } from "./lanestab";
import { shown } from "./names";
import { callsOf, offBoth, offEither } from "./off";
import { Progress } from "./progress";
import type { Reel } from "./reel";
import { Table, type Column } from "./table";
import { Timeline } from "./timeline";
import type { Call, DiffOff, DiffRow, Found, ReelInfo } from "./types";
import type { ViewState } from "./urlstate";
import { same } from "./viewport";

export class Compare {
  readonly element: HTMLElement;
  readonly timelines: Timeline[];
  private table: Table<DiffRow>;
  private filter = el("input", { type: "search", placeholder: "filter, or a glob", "aria-label": "Filter functions" });
  private note = el("span", { class: "quiet", "aria-live": "polite" });
  private off = el("div", { class: "off-notes" }); // what was not recorded
  private loaded = false;
  private loading = false;

  constructor(
    private reels: Reel[],
    tabs: LanesTab[],
    private owner: {
      failed(err: unknown): void;
      say(text: string): void;
      open(reel: number, c: Call): void;
      moved(): void;
      find(name: string): void;
      chosen(pair: ViewState["pair"]): void;
      scheme: ConstructorParameters<typeof Timeline>[2];
    },
  ) {
    this.table = new Table<DiffRow>("Functions by what became slower", columns(), "slower_ns", (r) => this.choose(r), "nothing differs");
    this.filter.addEventListener("input", () => this.table.filter(matcher(this.filter.value)));
    this.timelines = reels.map(
      (reel, i) =>
        new Timeline(reel.api, reel.names, owner.scheme, () => reel.bounds(), {
          moved: () => owner.moved(),
          selected: (bar, at) => bar && reel.callIn(bar, at).then((c) => c && owner.open(i, c), owner.failed),
          ranged: () => {},
          lane: () => {},
          find: (name) => owner.find(name),
          hovered: () => {},
          colorKey: tabs[i].timeline.listener.colorKey,
          failed: (err) => owner.failed(err),
        }),
    );
    this.element = el(
      "div",
      { class: "tab-compare" },
      el("div", { class: "analysis-bar" }, el("strong", {}, "B against A"), this.filter, this.note),
      this.off,
      this.table.element,
      ...this.timelines.map((t, i) =>
        el("section", { class: "compare-side", "aria-label": `Timeline of ${i === 0 ? "A" : "B"}` }, el("h3", {}, el("span", { class: "side" }, i === 0 ? "A" : "B"), ...heading(reels[i].info)), t.element),
      ),
    );
  }

  /** visibles are the visible ranges of the two, null where that is all; unknown before they were opened. */
  visibles(): ViewState["sides"] | null {
    if (!this.laid) return null;
    const [a, b] = this.timelines.map((t, i) => (same(t.target, this.reels[i].bounds()) ? null : { ...t.target }));
    return [a, b];
  }

  private laid = false;
  private pair = ""; // whose calls are selected

  /** apply makes the tab show the state. */
  apply(s: ViewState, fromURL: boolean) {
    const first = !this.laid;
    this.laid = true;
    if (first) this.timelines.forEach((t, i) => t.setLanes(this.reels[i].lanes));
    if (first) this.timelines.forEach((t, i) => t.mark(this.reels[i].dump, marks(this.reels[i].dump, 0)));
    if (first || fromURL) this.timelines.forEach((t, i) => t.show(s.sides[i] ?? this.reels[i].bounds(), false));
    if (this.loaded) this.select(s.pair, fromURL);
    else this.load(s);
  }

  private load(s: ViewState) {
    if (this.loading) return;
    this.loading = true;
    this.element.dataset.state = "loading";
    const stop = new AbortController();
    const progress = new Progress(() => {
      stop.abort();
      this.loading = false;
      this.element.dataset.state = "cancelled";
      replace(this.note, "cancelled ", el("button", { onclick: () => this.load(s) }, "Count"));
    });
    replace(this.note, progress.element);
    this.reels[0].api
      .json<{ functions: DiffRow[] | null; off?: DiffOff }>("diff", { ticket: progress.ticket }, stop.signal)
      .finally(() => progress.end())
      .then(({ functions, off }) => {
        this.loaded = true;
        this.table.set(functions ?? []);
        this.note.textContent = `${count(functions?.length ?? 0)} functions; a row shows its longest call in both`;
        replace(this.off, offBoth(off));
        this.element.dataset.state = "still";
        this.select(s.pair, s.sides.some((w) => w !== null));
      })
      .catch((err) => {
        if (stop.signal.aborted) return;
        this.note.textContent = "";
        this.loading = false;
        this.element.dataset.state = "failed";
        this.owner.failed(err);
      });
  }

  setMatch(reel: number, match: ReadonlySet<number> | null, text: string) {
    this.timelines[reel].match = match;
    this.timelines[reel].offs.find(text);
    this.timelines[reel].draw();
  }

  recolor() {
    this.timelines.forEach((t) => t.recolor());
  }

  private choose(r: DiffRow) {
    this.pair = keyOf(r);
    this.owner.chosen({ name: r.name, module: r.module });
    void this.jump(r, false);
  }

  private select(pair: ViewState["pair"], stay: boolean) {
    const key = pair ? keyOf(pair) : "";
    if (key === this.pair) return;
    this.pair = key;
    const r = pair && this.table.find((r) => keyOf(r) === key);
    if (r) return void this.jump(r, stay);
    if (pair) this.owner.say("no such function in either");
    for (const t of this.timelines) {
      t.selected = null;
      t.draw();
    }
  }

  // The function's longest call in each of the two; visible ranges stay where they came from the URL.
  private async jump(r: DiffRow, stay: boolean) {
    await Promise.all(
      this.reels.map(async (reel, i) => {
        const t = this.timelines[i];
        try {
          const c = (i === 0 ? r.a : r.b) ? await longest(reel, r) : null;
          t.selected = c && { lane: c.lane, row: c.row, start: c.start_ns, end: c.start_ns + c.duration_ns };
          t.draw();
          if (c && !stay) t.reveal(c.lane, c.row, { from: c.start_ns, to: c.start_ns + c.duration_ns }, true);
        } catch (err) {
          this.owner.failed(err);
        }
      }),
    );
  }
}

function heading(r: ReelInfo): Child[] {
  return [
    el("span", { class: "name" }, shown(r.name, 100)),
    el("span", { class: "quiet" }, `${duration(r.duration_ns)} · ${plural(r.calls, "call")}`),
    r.dropped > 0 && el("span", { class: "badge warn", title: "events that found no space in their ring" }, `${count(r.dropped)} lost`),
    r.error !== undefined && el("span", { class: "badge warn", title: shown(r.error, 300) }, "not readable"),
  ];
}

function keyOf(f: { name: string; module: string }): string {
  return `${f.module}\n${f.name}`;
}

async function longest(reel: Reel, r: DiffRow): Promise<Call | null> {
  // Names can hold * and ?; as a glob such a name finds itself, too.
  const found = await reel.api.json<Found>("find", { q: r.name, limit: 5000 });
  const f = (found.functions ?? []).find((f) => f.name === r.name && f.module === r.module);
  if (!f) return null;
  const { calls } = await reel.api.json<{ calls: Call[] | null }>("calls", { f: f.id, sort: "longest", limit: 1 });
  return calls?.[0] ?? null;
}

function columns(): Column<DiffRow>[] {
  const signed = (ns: number) => (ns === 0 ? "0" : el("span", { class: ns > 0 ? "slower" : "faster" }, (ns > 0 ? "+" : "") + duration(ns)));
  const change = (r: DiffRow) => (r.b?.self_ns ?? 0) / Math.max(1, r.a?.self_ns ?? 0);
  const side = (key: "total_ns" | "self_ns" | "p50_ns" | "p99_ns", s: "a" | "b", title: string): Column<DiffRow> => ({
    key: key + s,
    title,
    value: (r) => r[s]?.[key] ?? -1,
    show: (r) => {
      const ns = r[s]?.[key] ?? null;
      return ns === null ? "–" : duration(ns);
    },
  });
  return [
    { key: "name", title: "Function", wide: true, value: (r) => r.name, show: (r) => (r.off_a || r.off_b ? el("span", { class: "fn-off" }, nameCell(r.name, r.module), offEither(r)) : nameCell(r.name, r.module)) },
    { key: "slower_ns", title: "Slower by", hint: "time that its own code took in B beyond what as many calls of it took in A", width: 96, value: (r) => r.slower_ns, show: (r) => signed(r.slower_ns) },
    { key: "delta_self_ns", title: "Δ Self", hint: "time in it without the calls that it made: B less A", width: 96, value: (r) => r.delta_self_ns, show: (r) => signed(r.delta_self_ns) },
    { key: "delta_total_ns", title: "Δ Total", hint: "time in it, calls that it made included: B less A", width: 96, value: (r) => r.delta_total_ns, show: (r) => signed(r.delta_total_ns) },
    { key: "change", title: "Self B/A", value: change, show: (r) => ((!r.a || !r.b) && (r.off_a || r.off_b) ? "off" : !r.a ? "new" : !r.b ? "gone" : change(r) >= 999 ? "> 999" : "× " + change(r).toFixed(2)) },
    { key: "callsa", title: "Calls A", value: (r) => r.a?.calls ?? -1, show: (r) => (r.a ? callsOf(r.a.calls, r.off_a === true) : r.off_a ? "off" : "–") },
    { key: "callsb", title: "Calls B", value: (r) => r.b?.calls ?? -1, show: (r) => (r.b ? callsOf(r.b.calls, r.off_b === true) : r.off_b ? "off" : "–") },
    side("p50_ns", "a", "p50 A"),
    side("p50_ns", "b", "p50 B"),
    side("p99_ns", "a", "p99 A"),
    side("p99_ns", "b", "p99 B"),
  ];
}
