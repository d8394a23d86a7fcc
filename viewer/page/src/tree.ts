// The call tree as a table that unfolds.

import { el } from "./dom";
import type { Branch } from "./forest";
import { count, duration, percent } from "./format";
import { shown } from "./names";
import { rowHeight } from "./table";

export class Tree {
  readonly element: HTMLElement;
  private scroller: HTMLElement;
  private body = el("div", { class: "table-body", role: "rowgroup" });
  private root: Branch | null = null;
  private open = new Set<Branch>();
  private shown: Branch[] = [];
  private current = 0;
  private frame = 0;
  match: ReadonlySet<number> | null = null;

  constructor(private chosen: (b: Branch) => void) {
    const head = el(
      "div",
      { class: "table-head", role: "row" },
      ...["Function", "Total", "Share", "Self", "Calls", "A call"].map((t, i) => el("div", { role: "columnheader", class: i === 0 ? "wide" : "" }, el("span", {}, t))),
    );
    this.scroller = el("div", { class: "table-scroll", tabindex: 0, role: "treegrid", "aria-label": "Call tree" }, head, this.body);
    this.scroller.style.setProperty("--columns", "minmax(200px, 900px) 84px 84px 84px 96px 84px");
    this.element = el("div", { class: "table tree" }, this.scroller);
    this.scroller.addEventListener("scroll", () => this.draw());
    this.scroller.addEventListener("keydown", (e) => this.key(e));
    new ResizeObserver(() => this.draw()).observe(this.scroller);
  }

  show(root: Branch) {
    this.root = root;
    this.current = 0;
    this.open.clear();
    // The way that took most is open as far as it is one way.
    for (let b: Branch | undefined = root; b; b = b.children[0]) {
      this.open.add(b);
      if (b !== root && b.children.length > 0 && b.children[0].total < b.total * 0.5) break;
      if (b.depth > 24) break;
    }
    this.refresh();
  }

  draw() {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.paint();
    });
  }

  private refresh() {
    this.shown = [];
    const todo = [...(this.root?.children ?? [])].reverse();
    for (let b = todo.pop(); b; b = todo.pop()) {
      this.shown.push(b);
      if (this.open.has(b)) for (let i = b.children.length - 1; i >= 0; i--) todo.push(b.children[i]);
    }
    this.body.style.height = `${Math.max(1, this.shown.length) * rowHeight}px`;
    this.scroller.setAttribute("aria-rowcount", String(this.shown.length + 1));
    this.element.dataset.rows = String(this.shown.length);
    this.current = Math.min(this.current, Math.max(0, this.shown.length - 1));
    this.draw();
  }

  private paint() {
    const view = this.scroller.clientHeight;
    if (view === 0) return;
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / rowHeight) - 4);
    const end = Math.min(this.shown.length, Math.ceil((this.scroller.scrollTop + view) / rowHeight) + 4);
    const lines = this.shown.slice(first, end).map((b, i) => this.line(b, first + i));
    this.body.replaceChildren(...(this.shown.length > 0 ? lines : [el("div", { class: "table-empty" }, "no calls here")]));
    if (this.shown.length > 0) this.scroller.setAttribute("aria-activedescendant", `tree-${this.current}`);
  }

  private line(b: Branch, index: number): HTMLElement {
    const leaf = b.children.length === 0;
    const isOpen = this.open.has(b);
    const twist = el("span", { class: "twist" + (leaf ? " leaf" : isOpen ? " open" : ""), "aria-hidden": "true" });
    const name = el("div", { role: "gridcell", class: "wide" }, twist, el("span", { class: "fn name", title: shown(b.name, 2000) }, shown(b.name, 160)));
    name.style.paddingLeft = `${8 + Math.min(b.depth - 1, 60) * 14}px`;
    const share = el("div", { role: "gridcell", class: "share" }, percent(b.total / Math.max(1, this.root!.total)));
    share.style.setProperty("--share", `${(100 * b.total) / Math.max(1, this.root!.total)}%`);
    const row = el(
      "div",
      {
        class: "table-row" + (index === this.current ? " current" : "") + (this.match?.has(b.func) ? " match" : ""),
        role: "row",
        id: `tree-${index}`,
        "aria-level": b.depth,
        "aria-expanded": leaf ? undefined : String(isOpen),
        "aria-selected": index === this.current ? "true" : "false",
        onclick: () => {
          this.current = index;
          this.toggle(b);
          if (b.func !== 0) this.chosen(b);
        },
      },
      name,
      ...[duration(b.total)].map((t) => el("div", { role: "gridcell" }, t)),
      share,
      ...[duration(b.self), count(b.calls), duration(b.total / Math.max(1, b.calls))].map((t) => el("div", { role: "gridcell" }, t)),
    );
    row.style.transform = `translateY(${index * rowHeight}px)`;
    return row;
  }

  private toggle(b: Branch) {
    if (!this.open.delete(b)) this.open.add(b);
    this.refresh();
  }

  private key(e: KeyboardEvent) {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const b = this.shown[this.current];
    if (!b) return;
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / rowHeight) - 2);
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (e.key in steps) this.current = Math.max(0, Math.min(this.shown.length - 1, this.current + steps[e.key]));
    else if (e.key === "ArrowRight") {
      if (!this.open.has(b) && b.children.length > 0) this.toggle(b);
      else if (b.children.length > 0) this.current++;
    } else if (e.key === "ArrowLeft") {
      if (this.open.has(b) && b.children.length > 0) this.toggle(b);
      else if (b.parent && b.parent !== this.root) this.current = this.shown.indexOf(b.parent);
    } else if (e.key === "Enter" || e.key === " ") {
      if (b.func !== 0) this.chosen(b);
    } else return;
    e.preventDefault();
    e.stopPropagation();
    const top = this.current * rowHeight;
    const s = this.scroller;
    if (top < s.scrollTop) s.scrollTop = top;
    else if (top + 2 * rowHeight > s.scrollTop + s.clientHeight) s.scrollTop = top + 2 * rowHeight - s.clientHeight;
    this.paint();
  }
}
