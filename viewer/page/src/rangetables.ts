// The tables of what the program said in a range.

import type { Api } from "./api";
import { el, replace } from "./dom";
import { count, duration } from "./format";
import { nameCell } from "./functions";
import { value } from "./said";
import { Table } from "./table";
import type { MarkTable } from "./types";
import type { Ranged } from "./urlstate";
import type { Span } from "./viewport";

type SpanRow = MarkTable["spans"][number];
type CounterRow = MarkTable["counters"][number];
type InstantRow = MarkTable["instants"][number];

/** RangeTables shows one of three tables, or none where functions are shown. */
export class RangeTables {
  readonly element = el("div", { class: "range-tables", hidden: true });
  readonly chooser = el("span", { class: "range-chooser" });
  private spans: Table<SpanRow>;
  private counters: Table<CounterRow>;
  private instants: Table<InstantRow>;
  private stop: AbortController | null = null;
  private key = "";

  constructor(
    private api: () => Api,
    private act: { choose(kind: Ranged): void; title(title: number): void; track(track: number): void; failed(err: unknown): void },
  ) {
    const name = (r: { name: string; category?: string }) => nameCell(r.name, r.category ?? "");
    const of = (key: "total_ns" | "p50_ns" | "p99_ns" | "max_ns", title: string, hint: string) => ({ key, title, hint, value: (r: SpanRow) => r[key], show: (r: SpanRow) => duration(r[key]) });
    this.spans = new Table<SpanRow>(
      "Spans in the range",
      [
        { key: "name", title: "Span", wide: true, value: (r) => r.name, show: name },
        { key: "async", title: "Kind", width: 72, value: (r) => (r.async ? 1 : 0), show: (r) => (r.async ? "async" : "") },
        { key: "count", title: "Count", width: 84, value: (r) => r.count, show: (r) => count(r.count) },
        of("total_ns", "Total", "time within the range, of all threads"),
        of("p50_ns", "p50", "half of them took no longer"),
        of("p99_ns", "p99", "99 of 100 took no longer"),
        of("max_ns", "Max", "the longest"),
      ],
      "total_ns",
      (r) => act.title(r.title),
      "no spans here",
    );
    const number = (key: "min" | "mean" | "max" | "first" | "last", title: string, hint: string) => ({ key, title, hint, value: (r: CounterRow) => r[key], show: (r: CounterRow) => value(r[key]) });
    this.counters = new Table<CounterRow>(
      "Counters in the range",
      [
        { key: "name", title: "Counter", wide: true, value: (r) => r.name, show: name },
        { key: "values", title: "Values", width: 84, value: (r) => r.values, show: (r) => count(r.values) },
        number("first", "First", "what it was when the range begins"),
        number("min", "Min", "the least"),
        number("mean", "Mean", "over time: each value holds until the next"),
        number("max", "Max", "the greatest"),
        number("last", "Last", "what it was when the range ends"),
      ],
      "values",
      (r) => act.track(r.track),
      "no counters here",
    );
    this.instants = new Table<InstantRow>(
      "Instants in the range",
      [
        { key: "name", title: "Instant", wide: true, value: (r) => r.name, show: name },
        { key: "count", title: "Count", width: 84, value: (r) => r.count, show: (r) => count(r.count) },
      ],
      "count",
      (r) => act.title(r.title),
      "no instants here",
    );
    this.element.append(this.spans.element, this.counters.element, this.instants.element);
  }

  /** show chooses a table, for a range; known says that the program said anything. */
  show(kind: Ranged, range: Span | null, known: boolean) {
    const button = (k: Ranged, title: string) => el("button", { "aria-pressed": String(k === kind), onclick: () => this.act.choose(k) }, title);
    replace(this.chooser, known && el("div", { class: "segments", role: "group", "aria-label": "Table of" }, button("functions", "Functions"), button("spans", "Spans"), button("counters", "Counters"), button("instants", "Instants")));
    if (!known) kind = "functions";
    this.element.hidden = kind === "functions";
    this.spans.element.hidden = kind !== "spans";
    this.counters.element.hidden = kind !== "counters";
    this.instants.element.hidden = kind !== "instants";
    const key = known && range && kind !== "functions" ? `${range.from}-${range.to}` : "";
    if (key === this.key || key === "") return;
    this.key = key;
    this.stop?.abort();
    const stop = (this.stop = new AbortController());
    for (const t of [this.spans, this.counters, this.instants]) t.wait();
    this.api()
      .json<MarkTable>("marktable", { from: range!.from, to: range!.to }, stop.signal)
      .then((t) => {
        this.spans.set(t.spans);
        this.counters.set(t.counters);
        this.instants.set(t.instants);
      })
      .catch((err) => {
        if (stop.signal.aborted) return;
        this.key = "";
        this.act.failed(err);
      });
  }

  /** filter leaves out what isn't accepted. */
  filter(accept: (r: { name: string; module: string }) => boolean) {
    const by = (r: { name: string; category?: string }) => accept({ name: r.name, module: r.category ?? "" });
    this.spans.filter(by);
    this.counters.filter(by);
    this.instants.filter(by);
  }
}
