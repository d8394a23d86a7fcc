// Tables of functions, and what is known of one: how long its calls took, and which they were.

import { el, replace, type Child } from "./dom";
import { count, duration, percent, plural, since } from "./format";
import { shown } from "./names";
import { callsOf, offMark, offTimes } from "./off";
import type { Api } from "./api";
import { splitBar } from "./split";
import type { Bucket, By, Call, FunctionRow, Offs, Split } from "./types";
import { Table, type Column } from "./table";
import type { Span } from "./viewport";

/** nameCell shows a function's name, and its image less prominently. */
export function nameCell(name: string, module: string): Child {
  const full = shown(name, 2000);
  return el(
    "span",
    { class: "fn", title: module ? `${full}\n${shown(module)}` : full },
    el("span", { class: "name" }, shown(name, 160)),
    module ? el("span", { class: "module" }, shown(module, 60)) : null,
  );
}

/** FunctionTable is sortable by every column. Its times are of all states, or of one. */
export class FunctionTable extends Table<FunctionRow> {
  private by: By = "wall";
  private split = false; // states are known
  private most = { total: 1, self: 1 };

  constructor(label: string, chosen: (r: FunctionRow) => void) {
    super(label, [], "total", chosen, "no calls here");
    this.most = { total: 1, self: 1 };
    this.setColumns(this.made());
  }

  /** showBy makes times be those of a state; split says that states are known. */
  showBy(by: By, split: boolean) {
    if (by === this.by && split === this.split) return;
    [this.by, this.split] = [by, split];
    this.measure(this.all);
    this.setColumns(this.made());
  }

  override set(rows: FunctionRow[]) {
    this.measure(rows);
    super.set(rows);
  }

  private measure(rows: FunctionRow[]) {
    this.most = { total: 1, self: 1 };
    for (const r of rows) this.most = { total: Math.max(this.most.total, timeOf(r, "total", this.by)), self: Math.max(this.most.self, timeOf(r, "self", this.by)) };
  }

  private made(): Column<FunctionRow>[] {
    const of = this.by === "wall" ? "" : ` ${this.by}`;
    const what = { wall: "time", cpu: "time on a processor", ready: "time in which it could have run, and did not,", blocked: "time of waiting" }[this.by];
    const time = (key: "total" | "self", title: string, hint: string): Column<FunctionRow> => ({
      key,
      title: title + of,
      hint: `${what} in it${hint}`,
      width: of ? 104 : 84,
      value: (r) => timeOf(r, key, this.by),
      show: (r) => duration(timeOf(r, key, this.by)),
      share: (r) => timeOf(r, key, this.by) / this.most[key],
    });
    const whole = (key: "p50_ns" | "p99_ns" | "max_ns", title: string, hint: string): Column<FunctionRow> => ({
      key,
      title,
      hint,
      value: (r) => r[key] ?? -1,
      show: (r) => (r[key] === null ? "–" : duration(r[key])),
    });
    return [
      { key: "name", title: "Function", wide: true, value: (r) => r.name, show: (r) => (r.off_ns ? el("span", { class: "fn-off" }, nameCell(r.name, r.module), offMark(r)) : nameCell(r.name, r.module)) },
      { key: "calls", title: "Calls", width: 96, value: (r) => r.calls, show: (r) => callsOf(r.calls, r.off_ns !== undefined && r.off_ns > 0, r.estimated_calls) },
      time("total", "Total", ", calls that it made included; of recursion the outermost call only"),
      time("self", "Self", " without the calls that it made"),
      ...(this.split
        ? [{ key: "split", title: "Self is", hint: "how much of its own time its threads ran, could have run, and waited", width: 96, value: (r: FunctionRow) => (r.self_ns > 0 ? (r.self_blocked_ns ?? 0) / r.self_ns : 0), show: (r: FunctionRow) => splitBar(selfOf(r), r.self_ns) }]
        : []),
      whole("p50_ns", "p50", "half of its calls took no longer"),
      whole("p99_ns", "p99", "99 of 100 calls took no longer"),
      whole("max_ns", "Max", "the longest call"),
    ];
  }
}

function timeOf(r: FunctionRow, of: "total" | "self", by: By): number {
  return (by === "wall" ? r[`${of}_ns`] : r[`${of}_${by}_ns`]) ?? 0;
}

function selfOf(r: FunctionRow): Split {
  return { cpu_ns: r.self_cpu_ns ?? 0, ready_ns: r.self_ready_ns ?? 0, blocked_ns: r.self_blocked_ns ?? 0 };
}

/** matcher is the filter of tables of functions: a glob if it has * or ?, else a part, ignoring case. */
export function matcher(pattern: string): (r: { name: string; module: string }) => boolean {
  const p = pattern.trim();
  if (!p) return () => true;
  if (/[*?]/.test(p)) {
    // Runs of stars are one star: more would only take time.
    const source = p.replace(/\*+/g, "*").replace(/[.+^${}()|[\]\\]/g, "\\$&").replace(/\*/g, ".*").replace(/\?/g, ".");
    const re = new RegExp(`^${source}$`, "isu");
    return (r) => re.test(r.name);
  }
  const lower = p.toLowerCase();
  return (r) => r.name.toLowerCase().includes(lower) || r.module.toLowerCase().includes(lower);
}

/** FunctionDetail shows the distribution of a function's durations and its calls. */
export class FunctionDetail {
  readonly element = el("div", { class: "detail" });
  private stop: AbortController | null = null;
  private calls: Table<Call>;
  private histogram = el("div", { class: "histogram" });
  private off = el("div", {});
  private callsTitle = el("h3", {}, "Longest calls");
  private key = "";

  constructor(
    private api: () => Api,
    private laneTitle: (lane: number) => string,
    jump: (c: Call) => void,
  ) {
    this.calls = new Table<Call>(
      "Calls of the function",
      [
        { key: "duration", title: "Duration", width: 92, value: (c) => c.duration_ns, show: (c) => duration(c.duration_ns) },
        { key: "start", title: "Start", width: 92, value: (c) => c.start_ns, show: (c) => duration(since(c.start_ns)) },
        { key: "lane", title: "Thread", wide: true, value: (c) => this.laneTitle(c.lane), show: (c) => el("span", { class: "name" }, shown(this.laneTitle(c.lane), 60)) },
      ],
      "duration",
      jump,
      "no such calls",
    );
    this.element.append(
      el("section", { class: "detail-distribution", "aria-label": "Distribution of durations" }, el("h3", {}, "Durations"), this.histogram, this.off),
      el("section", { class: "detail-calls", "aria-label": "Calls" }, this.callsTitle, this.calls.element),
    );
  }

  /** show is for a function, within a range or everywhere; marked is a duration to point at. */
  show(func: number, range: Span | null, marked: number | null) {
    const key = `${this.api().reel} ${func} ${range?.from} ${range?.to}`;
    if (key === this.key) {
      this.mark(marked);
      return;
    }
    this.key = key;
    this.stop?.abort();
    const stop = (this.stop = new AbortController());
    const params: Record<string, string | number> = { f: func };
    if (range) Object.assign(params, { from: Math.floor(range.from), to: Math.ceil(range.to) });
    replace(this.histogram, el("p", { class: "quiet" }, "…"));
    this.api()
      .json<{ buckets: Bucket[] | null }>("distribution", params, stop.signal)
      .then(({ buckets }) => this.fill(buckets ?? [], params, marked))
      .catch((err) => this.failed(err, stop));
    replace(this.off);
    const reel = this.api().info.reels[this.api().reel];
    if (reel.off || reel.live) {
      this.api()
        .json<Offs | null>("offs", params, stop.signal)
        .then((off) => replace(this.off, offTimes(off)))
        .catch(() => {}); // it is but a note
    }
    this.list(params, null);
  }

  clear() {
    this.key = "";
    this.stop?.abort();
    replace(this.histogram);
    replace(this.off);
    this.calls.set([]);
  }

  private failed(err: unknown, stop: AbortController) {
    if (!stop.signal.aborted) replace(this.histogram, el("p", { class: "failure", role: "alert" }, String((err as Error).message)));
  }

  private fill(buckets: Bucket[], params: Record<string, string | number>, marked: number | null) {
    const most = Math.max(1, ...buckets.map((b) => b.calls));
    const total = buckets.reduce((n, b) => n + b.calls, 0);
    if (buckets.length === 0) {
      replace(this.histogram, el("p", { class: "quiet" }, "no complete calls"));
      return;
    }
    const bars = buckets.map((b) => {
      const what = `${duration(b.from_ns)} to ${duration(b.to_ns)}: ${plural(b.calls, "call")} (${percent(b.calls / total)})`;
      const bar = el("span", { class: "bar" });
      // By the logarithm: one call among a million is what is looked for.
      bar.style.height = b.calls === 0 ? "0" : `${12 + 88 * (Math.log(b.calls) / Math.max(Math.log(most), 1e-9) || (b.calls === most ? 1 : 0))}%`;
      const button = el("button", { class: "bucket", title: what, "aria-label": what, disabled: b.calls === 0 }, bar);
      button.dataset.from = String(b.from_ns);
      button.dataset.to = String(b.to_ns);
      button.addEventListener("click", () => {
        bars.forEach((o) => o.classList.toggle("chosen", o === button));
        this.list(params, b);
      });
      return button;
    });
    const last = buckets[buckets.length - 1];
    const row = el("div", { class: "buckets" }, ...bars);
    row.style.maxWidth = `${buckets.length * 36}px`;
    this.histogram.style.maxWidth = `${Math.max(280, buckets.length * 36 + 24)}px`;
    replace(
      this.histogram,
      row,
      el("div", { class: "axis" }, el("span", {}, duration(buckets[0].from_ns)), el("span", { class: "quiet" }, `${plural(total, "call")}, heights logarithmic`), el("span", {}, duration(last.to_ns))),
    );
    this.mark(marked);
  }

  private mark(at: number | null) {
    for (const b of this.histogram.querySelectorAll<HTMLElement>(".bucket")) {
      b.classList.toggle("marked", at !== null && at >= Number(b.dataset.from) && at < Number(b.dataset.to));
    }
  }

  private list(params: Record<string, string | number>, bucket: Bucket | null) {
    const query: Record<string, string | number> = { ...params, sort: "longest", limit: 200 };
    if (bucket) Object.assign(query, { min: Math.floor(bucket.from_ns), max: Math.ceil(bucket.to_ns) });
    this.callsTitle.textContent = bucket ? `Calls of ${duration(bucket.from_ns)} to ${duration(bucket.to_ns)}` : "Longest calls";
    const stop = this.stop!;
    this.calls.wait();
    this.api()
      .json<{ calls: Call[] | null; total: number }>("calls", query, stop.signal)
      .then(({ calls, total }) => {
        this.calls.set(calls ?? []);
        if (calls && total > calls.length) this.callsTitle.textContent += ` (${count(calls.length)} of ${count(total)})`;
      })
      .catch((err) => this.failed(err, stop));
  }
}
