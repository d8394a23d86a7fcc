// The tabs that sum up: flame graph, call tree and functions, of the whole
// recording, of the visible range or of the selected one, of all lanes or of one.

import type { Shade } from "./color";
import { shadeOf } from "./paint";
import { debounce, el, replace, select } from "./dom";
import { Flame } from "./flame";
import { grow } from "./forest";
import { count, duration } from "./format";
import { FunctionDetail, FunctionTable, matcher } from "./functions";
import { sorted, title } from "./layout";
import type { Owner } from "./lanestab";
import { shown } from "./names";
import { bySwitch, inWords } from "./split";
import { offNote } from "./off";
import { Progress } from "./progress";
import type { Reel } from "./reel";
import { Timeline, type Bar } from "./timeline";
import { Tree } from "./tree";
import type { By, Call, FunctionRow, Offs, TreeNode } from "./types";
import type { Scope, ViewState } from "./urlstate";
import { length, type Span } from "./viewport";

type Kind = "flame" | "tree" | "functions";

export class Analysis {
  readonly element: HTMLElement;
  private bar = el("div", { class: "analysis-bar" });
  private note = el("span", { class: "quiet", "aria-live": "polite" });
  private flame: Flame;
  private tree: Tree;
  private ordered: Timeline;
  private table = new FunctionTable("Functions", (r) => this.chooseFunction(r));
  private detail: FunctionDetail;
  private functionsBox: HTMLElement;
  private off = el("div", { class: "off-notes" }); // what was not recorded
  private orderedBox: HTMLElement;
  private key = "";
  private colors: ((func: number) => Shade) | null = null;
  private stop: AbortController | null = null;
  private filter = el("input", { type: "search", placeholder: "filter, or a glob", "aria-label": "Filter functions" });

  constructor(
    private reel: Reel,
    private owner: Owner,
    private jump: (c: Call) => void,
  ) {
    const color = (f: number) => (this.colors ??= shadeOf((id) => this.colorKey(id), owner.scheme()))(f);
    this.flame = new Flame(owner.scheme, color, () => {});
    this.tree = new Tree(() => {});
    this.ordered = new Timeline(reel.api, reel.names, owner.scheme, () => this.span(owner.state), {
      moved: () => {},
      selected: (bar, at) => bar && this.openCall(bar, at),
      ranged: () => {},
      lane: () => {},
      find: (name) => owner.findName(name),
      hovered: () => {},
      colorKey: (f) => this.colorKey(f),
      failed: (err) => owner.failed(err),
    });
    this.ordered.canvas.setAttribute("aria-label", "Calls of one thread in order of time");
    this.orderedBox = el("div", { class: "ordered" }, this.ordered.element);
    this.detail = new FunctionDetail(
      () => reel.api,
      (l) => reel.laneTitle(l),
      jump,
    );
    this.functionsBox = el("div", { class: "functions-box" }, this.table.element, this.detail.element);
    this.filter.addEventListener("input", debounce(() => owner.change({ filter: this.filter.value }, false), 120));
    this.element = el("div", { class: "tab-analysis" }, this.bar, this.off, this.flame.element, this.orderedBox, this.tree.element, this.functionsBox);
  }

  private colorKey(func: number): string | undefined {
    if (func === 0) return "";
    const n = this.reel.names.get(func);
    return n && (this.owner.state.colors === "image" ? "image " + (n.module ?? "") : n.name);
  }

  private openCall(bar: Bar, at: number) {
    this.reel
      .callIn(bar, at)
      .then((c) => c && this.jump(c))
      .catch((err) => this.owner.failed(err));
  }

  span(s: ViewState): Span {
    const all = this.reel.bounds();
    return (s.scope === "visible" ? s.visible : s.scope === "range" ? s.range : null) ?? all;
  }

  apply(s: ViewState) {
    const kind = s.tab as Kind;
    this.controls(s, kind);
    const timeOrder = kind === "flame" && s.order === "time";
    this.flame.element.hidden = kind !== "flame" || timeOrder;
    this.orderedBox.hidden = !timeOrder;
    this.tree.element.hidden = kind !== "tree";
    this.functionsBox.hidden = kind !== "functions";
    this.off.hidden = timeOrder;
    this.table.filter(matcher(s.filter));
    this.table.showBy(this.by(s), this.reel.hasStates);
    const span = this.span(s);
    if (timeOrder) {
      const lane = s.lane >= 0 ? s.lane : (sorted(this.reel.lanes, "activity")[0]?.id ?? 0);
      const key = `time ${lane} ${span.from} ${span.to}`;
      if (key === this.key) return;
      this.key = key;
      this.ordered.setLanes(this.reel.lanes, lane);
      this.ordered.setRows(20, [], "activity");
      this.ordered.source.clear();
      this.ordered.show(span, false);
      this.note.textContent = duration(length(span));
      return;
    }
    const key = `${kind === "functions" ? "functions" : "tree " + this.by(s)} ${s.lane} ${span.from} ${span.to}`;
    if (key === this.key) return;
    this.key = key;
    this.load(kind, s, span);
  }

  // Links may ask for what the recording doesn't have.
  private by(s: ViewState): By {
    return this.reel.hasStates ? s.by : "wall";
  }

  /** forget lets everything be asked for again. */
  forget() {
    this.key = "";
  }

  recolor() {
    this.colors = null;
    this.flame.draw();
    this.ordered.recolor();
  }

  get orderedTimeline(): Timeline | null {
    return this.orderedBox.hidden ? null : this.ordered;
  }

  setMatch(match: ReadonlySet<number> | null) {
    this.flame.match = this.tree.match = this.ordered.match = match;
    this.flame.draw();
    this.tree.draw();
    this.ordered.draw();
  }

  private load(kind: Kind, s: ViewState, span: Span) {
    this.stop?.abort();
    const stop = (this.stop = new AbortController());
    const progress = new Progress(() => {
      stop.abort();
      this.key = "";
      this.element.dataset.state = "cancelled";
      replace(this.note, "cancelled ", el("button", { onclick: () => this.apply(this.owner.state) }, "Count"));
      if (kind === "functions") this.table.set([]);
    });
    stop.signal.addEventListener("abort", () => progress.end());
    const params: Record<string, string | number> = {
      from: Math.floor(span.from),
      to: Math.ceil(span.to),
      lanes: s.lane >= 0 ? s.lane : "all",
      ticket: progress.ticket,
    };
    this.element.dataset.state = "loading";
    replace(this.note, progress.element);
    if (kind === "functions") this.table.wait();
    const done = (text: string) => {
      this.element.dataset.state = "still";
      this.note.textContent = `${duration(length(span))} · ${text}`;
    };
    if (kind !== "functions") this.noteOff(span, stop.signal);
    const request =
      kind === "functions"
        ? this.reel.api.json<{ functions: FunctionRow[] | null; off?: Offs }>("functions", params, stop.signal).then(({ functions, off }) => {
            replace(this.off, offNote(this.reel.api, span, off, this.reel.info.budget));
            this.table.set(functions ?? []);
            done(`${count(functions?.length ?? 0)} functions`);
          })
        : this.reel.api.json<{ nodes: TreeNode[] | null }>("tree", { ...params, depth: 500, limit: 50000, by: this.by(s) }, stop.signal).then(({ nodes }) => {
            const root = grow(nodes ?? []);
            this.flame.show(root);
            this.tree.show(root);
            done(`${count(nodes?.length ?? 0)} nodes, ${duration(root.total)} ${inWords(this.by(s))}`);
          });
    request.finally(() => progress.end()).catch((err) => {
      if (stop.signal.aborted) return;
      this.key = "";
      this.element.dataset.state = "failed";
      this.note.textContent = String((err as Error).message);
      this.owner.failed(err);
    });
  }

  // Calls of functions that were off are in none of these; their time is their callers'.
  private noteOff(span: Span, signal: AbortSignal) {
    replace(this.off);
    const { info, api } = this.reel;
    if (!info.off && !info.live) return;
    api
      .json<Offs | null>("offs", { from: Math.floor(span.from), to: Math.ceil(span.to) }, signal)
      .then((off) => replace(this.off, offNote(api, span, off, info.budget)))
      .catch(() => {}); // it is but a note
  }

  private chooseFunction(r: FunctionRow) {
    if (r.func === 0) return;
    this.detail.show(r.func, this.owner.state.scope === "all" ? null : this.span(this.owner.state), null);
    this.functionsBox.classList.add("with-detail");
  }

  private controls(s: ViewState, kind: Kind) {
    const set = (patch: Partial<ViewState>) => this.owner.change(patch, true);
    const scopes: [Scope, string, boolean][] = [
      ["all", this.reel.dump ? "The dump’s window" : "Whole recording", true],
      ["visible", "What the timeline shows", s.visible !== null],
      ["range", "Selected range", s.range !== null],
    ];
    const lanes: [string, string][] = sorted(this.reel.lanes, "activity")
      .slice(0, 2000)
      .map((l) => [String(l.id), `${shown(title(l), 40)} (${l.kind === "goroutine" ? l.goroutine : l.tid})`]);
    const active = document.activeElement;
    const label = active instanceof HTMLElement && this.bar.contains(active) ? active.getAttribute("aria-label") || active.textContent : null;
    if (this.filter.value !== s.filter && active !== this.filter) this.filter.value = s.filter;
    const had = active === this.filter;
    replace(
      this.bar,
      el(
        "div",
        { class: "segments", role: "group", "aria-label": "Of what" },
        ...scopes.map(([v, t, can]) => el("button", { "aria-pressed": String(s.scope === v), disabled: !can, onclick: () => set({ scope: v }) }, t)),
      ),
      select("Threads", [["-1", kind === "flame" && s.order === "time" ? "busiest thread" : "all threads"], ...lanes], String(s.lane), (v) => set({ lane: Number(v) })),
      kind === "flame" &&
        el(
          "div",
          { class: "segments", role: "group", "aria-label": "Order" },
          el("button", { "aria-pressed": String(s.order === "heavy"), onclick: () => set({ order: "heavy" }) }, "Left-heavy"),
          el("button", { "aria-pressed": String(s.order === "time"), onclick: () => set({ order: "time" }) }, "Time order"),
        ),
      this.reel.hasStates && (kind !== "flame" || s.order === "heavy") && bySwitch(s.by, (by) => set({ by })),
      kind === "functions" && this.filter,
      this.note,
      kind === "flame" &&
        el("a", { class: "button", href: this.reel.api.link("speedscope", this.linkParams(s)), download: "callreel.speedscope.json", title: "the same as a file for speedscope" }, "Save for speedscope"),
    );
    if (had) this.filter.focus();
    else if (label) for (const e of this.bar.querySelectorAll<HTMLElement>("button, select")) if ((e.getAttribute("aria-label") || e.textContent) === label) e.focus();
  }

  private linkParams(s: ViewState): Record<string, string | number> {
    const span = this.span(s);
    return { from: Math.floor(span.from), to: Math.ceil(span.to), lanes: s.lane >= 0 ? s.lane : "all" };
  }
}
