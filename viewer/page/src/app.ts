// The page as a whole: the bar above, the tabs, and the state that the URL holds.

import { Analysis } from "./analysis";
import { info as loadInfo } from "./api";
import { Compare } from "./compare";
import { debounce, el, replace } from "./dom";
import { Find } from "./find";
import { count, countFrom, duration, percent, plural, withoutClock } from "./format";
import { helpDialog } from "./help";
import { listen } from "./keys";
import { LanesTab, type Owner } from "./lanestab";
import { listenTo } from "./live";
import { shown } from "./names";
import { Pausing } from "./pausing";
import { Reel } from "./reel";
import { Theme } from "./theme";
import type { Timeline } from "./timeline";
import type { Call, Info } from "./types";
import { format, parse, type Tab, type ViewState } from "./urlstate";
import { length, same } from "./viewport";
import { Updates } from "./updates";

const tabTitles: Record<Tab, string> = { timeline: "Timeline", flame: "Flame graph", tree: "Call tree", functions: "Functions", compare: "Compare" };

export class App implements Owner {
  state: ViewState = parse(location.hash);
  readonly reels: Reel[];
  readonly lanes: LanesTab[];
  private analyses: Analysis[];
  private compare: Compare | null = null;
  private theme = new Theme(() => this.themed());
  private find: Find;
  private help = helpDialog();
  private tabBar = el("div", { class: "tabs", role: "tablist", "aria-label": "Views" });
  private file = el("div", { class: "file" });
  private main = el("main", { id: "main" });
  private notices = el("div", { class: "notices" });
  private voice = el("div", { class: "voice", role: "status", "aria-live": "polite" });
  private follower = el("button", { class: "follow", hidden: true, title: "End" }, "Follow");
  private pausing: Pausing;
  private themeButton = el("button", { class: "icon", title: "T" });
  private restoring = false;
  private following = false;

  constructor(info: Info) {
    this.reels = info.reels.map((_, i) => new Reel(info, i, () => this.namesArrived(i), () => this.marksArrived(i)));
    this.lanes = this.reels.map((r) => new LanesTab(r, this));
    this.analyses = this.reels.map((r, i) => new Analysis(r, this, (c) => this.open(i, c)));
    if (this.reels.length > 1) {
      this.compare = new Compare(this.reels, this.lanes, {
        failed: (err) => this.failed(err),
        say: (t) => this.say(t),
        open: (i, c) => this.open(i, c),
        moved: () => this.keepSoon(),
        find: (name) => this.findName(name),
        chosen: (pair) => this.change({ pair }, true),
        scheme: this.theme.scheme,
      });
    }
    this.find = new Find(this.reels, () => this.tab(), {
      changed: (q) => this.change({ find: q }, false),
      matched: (i, m) => this.matched(i, m),
      titles: (i, m) => this.matchedTitles(i, m),
      failed: (err) => this.failed(err),
      openTimeline: () => this.state.tab !== "timeline" && this.change({ tab: "timeline" }, true),
    });
    this.pausing = new Pausing(this.reels[0], info.control === true && this.reels.length === 1, {
      failed: (err) => this.failed(err),
      say: (t) => this.say(t),
      changed: () => this.bars(),
    });
    this.build();
    this.listen();
  }

  scheme = () => this.theme.scheme();

  tab(): LanesTab {
    return this.lanes[Math.min(this.state.reel, this.lanes.length - 1)];
  }

  private analysis(): Analysis {
    return this.analyses[Math.min(this.state.reel, this.lanes.length - 1)];
  }

  /** timeline is the one on the screen, if there is one. */
  timeline(): Timeline | null {
    if (this.state.tab === "timeline") return this.tab().timeline;
    if (this.state.tab === "compare") return this.compare?.timelines.find((t) => t.canvas === document.activeElement) ?? this.compare?.timelines[0] ?? null;
    return this.analysis().orderedTimeline;
  }

  private build() {
    this.follower.addEventListener("click", () => this.follow(!this.state.follow));
    this.themeButton.addEventListener("click", () => this.theme.next());
    const help = el("button", { class: "icon", "aria-label": "Keyboard help", title: "?", onclick: () => this.help.showModal() }, "?");
    const top = el("header", { class: "top" }, this.file, this.tabBar, el("span", { class: "grow" }), this.find.element, this.pausing.element, this.follower, this.themeButton, help);
    this.main.append(...this.lanes.map((l) => l.element), ...this.analyses.map((a) => a.element));
    if (this.compare) this.main.append(this.compare.element);
    replace(document.body, top, this.notices, this.main, this.voice, this.help);
    this.themeLabel();
    this.showTab(); // at once, not only when the lanes are here
  }

  private listen() {
    listen({
      tab: () => this.tab(),
      timeline: () => this.timeline(),
      open: (tab) => (tab !== "compare" || this.compare) && this.change({ tab }, true),
      focusFind: () => {
        this.find.input.focus();
        this.find.input.select();
      },
      next: (d) => void this.find.next(d),
      trigger: (step) => this.tab().stepTrigger(step),
      earlier: () => this.tab().showEarlier(),
      said: () => this.change({ said: !this.state.said }, false),
      pause: () => this.pausing.toggle(),
      theme: () => this.theme.next(),
      help: () => this.help.showModal(),
      escape: () => this.escape(),
      end: () => this.end(),
      useVisibleAsRange: () => {
        const w = this.tab().timeline.target;
        this.change({ range: { from: Math.floor(w.from), to: Math.ceil(w.to) } }, true);
      },
    });
    window.addEventListener("popstate", () => this.restore());
    window.addEventListener("hashchange", () => this.restore());
    window.addEventListener("pagehide", () => this.keepPlace());
  }

  /** start loads what is needed for the first picture. */
  async start() {
    await this.load();
    this.reels.forEach((r, i) => {
      const t = this.lanes[i].timeline;
      t.source.clear();
      t.visible = t.target = { ...r.bounds() };
      this.lanes[i].marksArrived();
    });
    for (const r of this.reels) if (r.info.scheduling?.summing) void r.api.summed().then(() => this.summed(r));
    const live = this.reels.some((r) => r.info.live);
    if (live && !location.hash) this.state.follow = true;
    if (this.reels.length === 1) countFrom(this.reels[0].dump?.from_ns ?? 0);
    // A dump opens at what it was made for.
    if (!location.hash) Object.assign(this.state, this.tab().viewOf(0));
    this.apply(true);
    if (this.state.follow) this.follow(true);
    if (this.reels.some((r) => r.info.live || !r.info.closed)) this.startUpdates();
    // The lanes can be moved by keys at once.
    if (this.state.tab === "timeline") this.tab().timeline.canvas.focus({ preventScroll: true });
  }

  // Of two recordings one may be of no use; the other one can be looked at all the same.
  private async load() {
    const failed = await Promise.all(this.reels.map((r) => r.load().then(() => null, (err: unknown) => err as Error)));
    if (failed.every((err) => err)) throw failed[0];
    failed.forEach((err, i) => err && this.failed(new Error(`${this.reels[i].info.name} can't be shown: ${this.reels[i].info.error ?? err.message}`)));
    if (failed[this.state.reel]) this.state.reel = 1 - this.state.reel;
  }

  // ---- state

  change(patch: Partial<ViewState>, push: boolean) {
    this.keepPlace();
    Object.assign(this.state, patch);
    const hash = "#" + format(this.state);
    if (hash !== (location.hash || "#")) {
      if (push) history.pushState(null, "", hash);
      else history.replaceState(null, "", hash);
    }
    this.apply(patch.reel !== undefined);
  }

  // The place that is left is what Back comes back to.
  private keepPlace() {
    if (this.restoring) return;
    const t = this.tab().timeline;
    const all = this.tab().reel.bounds();
    // Of a dump what nothing is said of is the view of its trigger.
    this.state.visible = same(t.target, all) && !this.tab().reel.dump ? null : { ...t.target };
    this.state.scroll = t.top / t.rowHeight;
    this.state.collapsed = t.closed;
    this.state.sides = this.compare?.visibles() ?? this.state.sides;
    const hash = "#" + format(this.state);
    if (hash !== (location.hash || "#")) history.replaceState(null, "", hash);
  }

  private keepSoon = debounce(() => this.keepPlace(), 250);

  moved() {
    if (this.state.follow && !this.following) {
      const t = this.tab().timeline.target;
      if (t.to < this.tab().reel.bounds().to - length(t) * 0.02) this.follow(false);
    }
    this.keepSoon();
  }

  private restore() {
    const s = parse(location.hash);
    if (format(s) === format(this.state)) return;
    this.state = s;
    this.apply(true);
  }

  private apply(fromURL: boolean) {
    this.restoring = true;
    const s = this.state;
    this.showTab();
    this.tab().apply(s, fromURL);
    if (s.tab === "compare") this.compare!.apply(s, fromURL);
    else if (s.tab !== "timeline") this.analysis().apply(s);
    this.find.restore(s.find);
    this.restoring = false;
  }

  private showTab() {
    const s = this.state;
    if (s.tab === "compare" && !this.compare) s.tab = "timeline";
    this.lanes.forEach((l) => (l.element.hidden = s.tab !== "timeline" || l !== this.tab()));
    this.analyses.forEach((a) => (a.element.hidden = s.tab === "timeline" || s.tab === "compare" || a !== this.analysis()));
    if (this.compare) this.compare.element.hidden = s.tab !== "compare";
    this.bars();
  }

  private bars() {
    const s = this.state;
    const tabs = (Object.keys(tabTitles) as Tab[]).filter((t) => t !== "compare" || this.compare);
    const focused = this.tabBar.contains(document.activeElement);
    replace(
      this.tabBar,
      ...tabs.map((t, i) =>
        el("button", { role: "tab", "aria-selected": String(s.tab === t), title: String(i + 1), onclick: () => this.change({ tab: t }, true) }, tabTitles[t]),
      ),
    );
    if (focused) this.tabBar.querySelector<HTMLElement>('[aria-selected="true"]')?.focus();
    const r = this.tab().reel.info;
    document.title = `${shown(r.name, 80)} – callreel`;
    const name = shown(r.name, 60);
    const lanes = this.tab().reel.lanes.length;
    replace(
      this.file,
      el("span", { class: "mark", "aria-hidden": "true" }),
      this.reels.length > 1
        ? el(
            "div",
            { class: "segments", role: "group", "aria-label": "Recording" },
            ...this.reels.map((reel, i) =>
              el("button", { "aria-pressed": String(i === s.reel), title: shown(reel.info.path, 400), onclick: () => this.change({ reel: i, selected: null, state: null, range: null, ...(reel.dump ? this.lanes[i].viewOf(0) : {}) }, true) }, `${i === 0 ? "A" : "B"} `, el("span", { class: "name" }, shown(reel.info.name, 30))),
            ),
          )
        : el("span", { class: "name file-name", title: shown(r.path, 400) }, name),
      el("span", { class: "quiet facts-line" }, [duration(r.dump ? length(this.tab().reel.bounds()) : r.duration_ns), plural(r.calls, "call"), ...(lanes > 0 ? [plural(lanes, r.goroutines ? "lane" : "thread")] : [])].join(" · ")),
      r.dropped > 0 && el("span", { class: "badge warn", title: "events that found no space in their ring" }, `${count(r.dropped)} lost`),
      this.tab().reel.later() && el("span", { class: "badge later", title: "calls are shown meanwhile" }, this.tab().reel.later()),
      r.damaged && r.damaged.length > 0 && el("span", { class: "badge warn", title: r.damaged.slice(0, 20).map((d) => shown(String(d), 300)).join("\n") }, "damaged"),
      !r.closed && !r.live && el("span", { class: "badge warn", title: "the recorder did not close this file: it was killed, or the file is cut short" }, "not closed"),
      r.clock === "none" && el("span", { class: "badge", title: "recorded with --clock none: the ruler numbers events (#), and how long something took is how many events (ev) came meanwhile" }, "no clock"),
      r.live && (s.reel === 0 ? this.pausing.badge() : el("span", { class: "badge live" }, "recording")),
    );
    this.pausing.show();
    this.follower.hidden = !r.live;
    this.follower.setAttribute("aria-pressed", String(s.follow));
  }

  // ---- what the parts ask for

  openLane(lane: number) {
    this.change({ tab: "flame", lane }, true);
  }

  open(reel: number, c: Call) {
    this.change({ tab: "timeline", reel }, true);
    this.lanes[reel].jump(c);
  }

  findName(q: string) {
    this.find.set(q);
  }

  private matchedTitles(reel: number, m: ReadonlySet<number> | null) {
    this.lanes[reel].timeline.titleMatch = m;
    this.lanes[reel].timeline.draw();
  }

  private matched(reel: number, m: ReadonlySet<number> | null) {
    this.lanes[reel].timeline.match = m;
    this.lanes[reel].timeline.offs.find(m ? this.state.find : "");
    this.lanes[reel].timeline.draw();
    this.analyses[reel].setMatch(m);
    this.compare?.setMatch(reel, m, m ? this.state.find : "");
  }

  private namesArrived(reel: number) {
    this.lanes[reel].namesArrived();
    this.analyses[reel].recolor();
    this.compare?.timelines[reel].namesArrived();
  }

  private marksArrived(reel: number) {
    this.lanes[reel].marksArrived();
    this.find.marksArrived();
    this.bars();
  }

  private summed(r: Reel) {
    if (r.info.scheduling) r.info.scheduling.summing = false;
    this.bars();
  }

  say(text: string) {
    this.voice.textContent = shown(text, 300);
  }

  failed(err: unknown) {
    const text = shown(String((err as Error).message ?? err), 400);
    if (this.notices.firstElementChild?.firstChild?.textContent === text) return;
    this.notify(text, "alert");
  }

  private notify(text: string, role: "alert" | "status"): HTMLElement {
    const notice: HTMLElement = el("div", { class: role === "alert" ? "notice" : "notice news", role }, text, el("button", { class: "close", "aria-label": "Dismiss", onclick: () => notice.remove() }, "✕"));
    replace(this.notices, notice);
    return notice;
  }

  private escape() {
    const s = this.state;
    if (s.range) this.change({ range: null }, true);
    else if (s.state) this.change({ state: null }, true);
    else if (s.selected || s.mark) this.change({ selected: null, mark: null }, true);
    else if (s.find) this.find.set("");
  }

  private themed() {
    this.themeLabel();
    this.lanes.forEach((l) => {
      l.timeline.recolor();
      l.peer.timeline.recolor();
      l.overview.draw();
    });
    this.analyses.forEach((a) => a.recolor());
    this.compare?.recolor();
  }

  private themeLabel() {
    const text = { auto: "◐", light: "☀", dark: "☾" }[this.theme.choice];
    this.themeButton.textContent = text;
    this.themeButton.setAttribute("aria-label", `Theme: ${this.theme.choice === "auto" ? "as the system" : this.theme.choice}`);
  }

  // ---- a recording in progress

  private startUpdates() {
    new Updates(this.reels, {
      grown: (i, before) => {
        this.lanes[i].timeline.source.cutAt(before);
        this.lanes[i].overview.refresh();
        this.analyses[i].forget();
        this.bars();
        if (this.state.follow && i === this.state.reel) this.toEnd(before);
        this.lanes[i].timeline.draw();
      },
      changed: (i) => {
        this.lanes[i].marksArrived();
        this.bars();
      },
      ended: (i) => this.ended(i),
      answers: (does) => this.answers(does),
      failed: (err) => this.failed(err),
    });
  }

  private ended(i: number) {
    const r = this.reels[i].info;
    if (i === this.state.reel && this.state.follow) {
      this.toEnd(this.reels[i].bounds().to);
      this.change({ follow: false }, false);
    }
    this.lanes[i].timeline.source.clear(); // from now on every part of it is final
    this.lanes[i].timeline.offs.forget();
    this.lanes[i].timeline.draw();
    this.lanes[i].overview.refresh();
    const text = `The recording has ended: ${duration(r.duration_ns)}, ${plural(r.calls, "call")}${r.dropped > 0 ? `, ${count(r.dropped)} lost` : ""}.${r.closed ? "" : " Its file was not closed: the recorder was killed."}`;
    this.say(text);
    this.notify(text, "status");
  }

  private unanswered: HTMLElement | null = null;

  private answers(does: boolean) {
    if (does || this.unanswered) {
      if (does) this.unanswered?.remove();
      if (does) this.unanswered = null;
      return;
    }
    this.unanswered = this.notify("callreel view does not answer; is it still running? What is shown may not be all of the recording.", "alert");
  }

  private follow(on: boolean) {
    this.state.follow = on && this.tab().reel.info.live;
    this.bars();
    if (this.state.follow) this.toEnd(this.tab().reel.bounds().to);
    this.keepSoon();
  }

  // What is followed is the last ten seconds, or as much as was shown.
  private toEnd(before: number) {
    const t = this.tab().timeline;
    const end = this.tab().reel.bounds().to;
    const { from } = this.tab().reel.bounds();
    const shows = length(t.target) >= (before - from) * 0.999 ? Math.min(end - from, 10e9) : length(t.target);
    this.following = true;
    t.show({ from: end - shows, to: end });
    this.following = false;
    this.tab().overview.draw();
  }

  private end() {
    if (this.tab().reel.info.live) this.follow(true);
    else this.toEnd(this.tab().reel.bounds().to);
  }
}

/** open loads the page; while the reel is being indexed it says how far that is. */
export async function open(): Promise<App> {
  let info = await loadInfo();
  if (info.build.progress < 1) info = await indexing();
  if (info.reels.some((r) => r.clock === "none")) withoutClock();
  const app = new App(info);
  await app.start();
  return app;
}

async function indexing(): Promise<Info> {
  const bar = el("progress", { max: 1, value: 0, "aria-label": "Indexing" });
  const text = el("p", {}, "Indexing the recording…");
  replace(document.body, el("div", { class: "indexing" }, text, bar));
  const show = (share: number) => {
    bar.value = share;
    text.textContent = `Indexing the recording: ${percent(share)}`;
  };
  const events = listenTo({ progress: show, grown: () => {}, closed: () => {} });
  try {
    for (;;) {
      const info = await loadInfo();
      if (info.build.progress >= 1) return info;
      show(info.build.progress);
      await new Promise((done) => setTimeout(done, 250));
    }
  } finally {
    events.close();
  }
}
