// Two reels: what became slower, and both timelines one above the other.

import { el } from "./dom";
import { count, duration } from "./format";
import { nameCell, matcher } from "./functions";
import type { LanesTab } from "./lanestab";
import { shown } from "./names";
import type { Reel } from "./reel";
import { Table, type Column } from "./table";
import { Timeline } from "./timeline";
import type { Call, DiffRow, Found } from "./types";

export class Compare {
  readonly element: HTMLElement;
  readonly timelines: Timeline[];
  private table: Table<DiffRow>;
  private filter = el("input", { type: "search", placeholder: "filter, or a glob", "aria-label": "Filter functions" });
  private note = el("span", { class: "quiet", "aria-live": "polite" });
  private loaded = false;

  constructor(
    private reels: Reel[],
    tabs: LanesTab[],
    private owner: { failed(err: unknown): void; say(text: string): void; open(reel: number, c: Call): void; scheme: ConstructorParameters<typeof Timeline>[2] },
  ) {
    this.table = new Table<DiffRow>("Functions by what became slower", columns(), "delta_self_ns", (r) => void this.jump(r), "nothing differs");
    this.filter.addEventListener("input", () => this.table.filter(matcher(this.filter.value)));
    this.timelines = reels.map(
      (reel, i) =>
        new Timeline(reel.api, reel.names, owner.scheme, () => reel.bounds(), {
          moved: () => {},
          selected: (bar, at) => bar && reel.callIn(bar, at).then((c) => c && owner.open(i, c), owner.failed),
          ranged: () => {},
          lane: () => {},
          hovered: () => {},
          colorKey: tabs[i].timeline.listener.colorKey,
        }),
    );
    this.element = el(
      "div",
      { class: "tab-compare" },
      el("div", { class: "analysis-bar" }, el("strong", {}, "B against A"), this.filter, this.note),
      this.table.element,
      ...this.timelines.map((t, i) =>
        el("section", { class: "compare-side", "aria-label": `Timeline of ${i === 0 ? "A" : "B"}` }, el("h3", {}, el("span", { class: "side" }, i === 0 ? "A" : "B"), el("span", { class: "name" }, shown(reels[i].info.name, 100)), el("span", { class: "quiet" }, duration(reels[i].info.duration_ns))), t.element),
      ),
    );
  }

  open() {
    if (this.loaded) return;
    this.loaded = true;
    this.timelines.forEach((t, i) => t.setLanes(this.reels[i].lanes));
    this.element.dataset.state = "loading";
    this.note.textContent = "counting…";
    this.reels[0].api
      .json<{ functions: DiffRow[] | null }>("diff")
      .then(({ functions }) => {
        this.table.set(functions ?? []);
        this.note.textContent = `${count(functions?.length ?? 0)} functions; a row shows its longest call in both`;
        this.element.dataset.state = "still";
      })
      .catch((err) => {
        this.loaded = false;
        this.element.dataset.state = "failed";
        this.owner.failed(err);
      });
  }

  setMatch(reel: number, match: ReadonlySet<number> | null) {
    this.timelines[reel].match = match;
    this.timelines[reel].draw();
  }

  recolor() {
    this.timelines.forEach((t) => t.recolor());
  }

  // The function's longest call in each of the two.
  private async jump(r: DiffRow) {
    await Promise.all(
      this.reels.map(async (reel, i) => {
        const t = this.timelines[i];
        try {
          const c = (i === 0 ? r.a : r.b) ? await longest(reel, r) : null;
          t.selected = c && { lane: c.lane, row: c.row, start: c.start_ns, end: c.start_ns + c.duration_ns };
          t.draw();
          if (c) t.reveal(c.lane, c.row, { from: c.start_ns, to: c.start_ns + c.duration_ns }, true);
        } catch (err) {
          this.owner.failed(err);
        }
      }),
    );
  }
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
    show: (r) => (r[s] ? duration(r[s][key]) : "–"),
  });
  return [
    { key: "name", title: "Function", wide: true, value: (r) => r.name, show: (r) => nameCell(r.name, r.module) },
    { key: "delta_self_ns", title: "Δ Self", hint: "time in it without the calls that it made: B less A", width: 96, value: (r) => r.delta_self_ns, show: (r) => signed(r.delta_self_ns) },
    { key: "delta_total_ns", title: "Δ Total", hint: "time in it, calls that it made included: B less A", width: 96, value: (r) => r.delta_total_ns, show: (r) => signed(r.delta_total_ns) },
    { key: "change", title: "Self B/A", value: change, show: (r) => (!r.a ? "new" : !r.b ? "gone" : change(r) >= 999 ? "> 999" : "× " + change(r).toFixed(2)) },
    { key: "callsa", title: "Calls A", value: (r) => r.a?.calls ?? -1, show: (r) => (r.a ? count(r.a.calls) : "–") },
    { key: "callsb", title: "Calls B", value: (r) => r.b?.calls ?? -1, show: (r) => (r.b ? count(r.b.calls) : "–") },
    side("p50_ns", "a", "p50 A"),
    side("p50_ns", "b", "p50 B"),
    side("p99_ns", "a", "p99 A"),
    side("p99_ns", "b", "p99 B"),
  ];
}
