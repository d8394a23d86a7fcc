// A table that can be sorted and filtered, of which only the rows on the screen
// are elements: it may have a hundred thousand.

import { el, replace, type Child } from "./dom";

export interface Column<R> {
  key: string;
  title: string;
  hint?: string;
  wide?: boolean; // takes the room that is left, and its text begins at the left
  width?: number; // CSS pixels
  value: (r: R) => number | string;
  show: (r: R) => Child;
  share?: (r: R) => number; // 0 to 1: drawn as a bar
}

export const rowHeight = 24;

export class Table<R> {
  readonly element: HTMLElement;
  rows: R[] = [];
  protected all: R[] = [];
  private head = el("div", { class: "table-head", role: "row" });
  private body = el("div", { class: "table-body", role: "rowgroup" });
  private scroller: HTMLElement;
  private down = true;
  private accept: (r: R) => boolean = () => true;
  private current = -1;
  private frame = 0;
  private readonly id = `t${Math.random().toString(36).slice(2, 8)}`;

  constructor(
    label: string,
    protected columns: Column<R>[],
    private order: string,
    private chosen: (r: R) => void,
    private empty = "nothing here",
  ) {
    this.scroller = el("div", { class: "table-scroll", tabindex: 0, role: "grid", "aria-label": label }, this.head, this.body);
    this.element = el("div", { class: "table" }, this.scroller);
    this.scroller.addEventListener("scroll", () => this.draw());
    this.scroller.addEventListener("keydown", (e) => this.key(e));
    new ResizeObserver(() => this.draw()).observe(this.scroller);
    this.setColumns(columns);
  }

  /** setColumns shows others; the one that rows are ordered by is to be among them. */
  protected setColumns(columns: Column<R>[]) {
    this.columns = columns;
    const widths = columns.map((c) => (c.wide ? "minmax(160px, 860px)" : `${c.width ?? 84}px`)).join(" ");
    this.scroller.style.setProperty("--columns", widths);
    this.heading();
    this.refresh();
  }

  /** sortBy orders by a column, largest first unless it holds text. */
  sortBy(key: string, down?: boolean) {
    const c = this.columns.find((c) => c.key === key);
    if (!c) return;
    this.down = down ?? (this.order === key ? !this.down : !c.wide);
    this.order = key;
    this.heading();
    this.refresh();
  }

  set(rows: R[]) {
    this.element.dataset.state = "still";
    this.all = rows;
    this.current = -1;
    this.refresh();
  }

  /** find looks through all rows, whatever the filter. */
  find(is: (r: R) => boolean): R | undefined {
    return this.all.find(is);
  }

  /** wait says that rows are on their way. */
  wait() {
    this.set([]);
    this.element.dataset.state = "loading";
  }

  filter(accept: (r: R) => boolean) {
    this.accept = accept;
    this.refresh();
  }

  private refresh() {
    const c = this.columns.find((c) => c.key === this.order);
    if (!c) return; // there are no columns yet
    const kept = this.all.filter(this.accept);
    const sign = this.down ? -1 : 1;
    const keyed = kept.map((r) => [c.value(r), r] as const);
    keyed.sort(([a], [b]) => (a < b ? -sign : a > b ? sign : 0));
    this.rows = keyed.map(([, r]) => r);
    this.scroller.setAttribute("aria-rowcount", String(this.rows.length + 1));
    this.element.dataset.rows = String(this.rows.length);
    this.body.style.height = `${Math.max(1, this.rows.length) * rowHeight}px`;
    if (this.current >= this.rows.length) this.current = -1;
    this.body.replaceChildren();
    this.draw();
  }

  private heading() {
    replace(
      this.head,
      ...this.columns.map((c) => {
        const sorted = this.order === c.key ? (this.down ? "descending" : "ascending") : "none";
        const button = el("button", { title: c.hint, onclick: () => this.sortBy(c.key) }, c.title);
        return el("div", { role: "columnheader", "aria-sort": sorted, class: c.wide ? "wide" : "" }, button);
      }),
    );
  }

  private draw() {
    if (this.frame === 0) {
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.paint();
      });
    }
  }

  private paint() {
    const view = this.scroller.clientHeight;
    if (view === 0) return;
    if (this.rows.length === 0) {
      this.body.replaceChildren(el("div", { class: "table-empty" }, this.element.dataset.state === "loading" ? "counting…" : this.empty));
      return;
    }
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / rowHeight) - 4);
    const end = Math.min(this.rows.length, Math.ceil((this.scroller.scrollTop + view) / rowHeight) + 4);
    this.body.replaceChildren(...this.rows.slice(first, end).map((r, i) => this.line(r, first + i)));
    if (this.current >= 0) this.scroller.setAttribute("aria-activedescendant", `${this.id}-${this.current}`);
    else this.scroller.removeAttribute("aria-activedescendant");
  }

  private line(r: R, index: number): HTMLElement {
    const row = el(
      "div",
      {
        class: "table-row" + (index === this.current ? " current" : ""),
        role: "row",
        id: `${this.id}-${index}`,
        "aria-rowindex": index + 2,
        "aria-selected": index === this.current ? "true" : "false",
        onclick: () => this.choose(index),
      },
      ...this.columns.map((c) => {
        const cell = el("div", { role: "gridcell", class: c.wide ? "wide" : "" }, c.show(r));
        if (c.share) {
          cell.classList.add("share");
          cell.style.setProperty("--share", `${Math.min(100, Math.max(0, c.share(r) * 100))}%`);
        }
        return cell;
      }),
    );
    row.style.transform = `translateY(${index * rowHeight}px)`;
    return row;
  }

  private choose(index: number) {
    this.current = index;
    this.paint();
    this.chosen(this.rows[index]);
  }

  private key(e: KeyboardEvent) {
    if (e.target !== this.scroller || e.ctrlKey || e.metaKey || e.altKey) return;
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / rowHeight) - 2);
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (e.key === "Enter" || e.key === " ") {
      if (this.current >= 0) this.choose(this.current);
    } else if (e.key in steps && this.rows.length > 0) {
      this.current = Math.max(0, Math.min(this.rows.length - 1, this.current + steps[e.key]));
      this.inSight();
      this.paint();
    } else return;
    e.preventDefault();
    e.stopPropagation();
  }

  private inSight() {
    const s = this.scroller;
    const top = this.current * rowHeight;
    if (top < s.scrollTop) s.scrollTop = top;
    // The heading takes a row's place.
    else if (top + 2 * rowHeight > s.scrollTop + s.clientHeight) s.scrollTop = top + 2 * rowHeight - s.clientHeight;
  }
}
