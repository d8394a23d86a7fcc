// The whole view as the hash of the URL, so that a link or a reload comes back to it.

import type { By } from "./types";
import type { Span } from "./viewport";

export const tabs = ["timeline", "flame", "tree", "functions", "compare"] as const;
export type Tab = (typeof tabs)[number];

/** Place is where a call is: any instant inside it, in its lane and row. */
export interface Place {
  lane: number;
  row: number;
  at: number; // ns
}

/** MarkKind is how what the program said is asked for. */
export const markKinds = ["span", "instant", "value"] as const;
export type MarkKind = (typeof markKinds)[number];

export const rangedKinds = ["functions", "spans", "counters", "instants"] as const;
export type Ranged = (typeof rangedKinds)[number];

export type Scope = "all" | "visible" | "range";

export interface ViewState {
  tab: Tab;
  reel: number; // which of two
  visible: Span | null; // null: all
  range: Span | null;
  selected: Place | null;
  find: string;
  scroll: number; // rows from the top
  height: number; // of a row, CSS pixels; 0: as suits
  collapsed: number[]; // lanes
  sort: string; // of lanes
  colors: "function" | "image";
  scope: Scope; // of flame graph, tree and functions
  lane: number; // their lane; -1: all
  order: "heavy" | "time"; // of the flame graph
  by: By; // of what state times of tables and graphs are
  state: { lane: number; at: number } | null; // of a thread, that is selected
  mark: { kind: MarkKind; lane: number; row: number; at: number } | null; // of what the program said, that is selected
  said: boolean; // what the program said is shown
  ranged: Ranged; // what the table of the range is of
  filter: string; // of functions
  follow: boolean;
  sides: [Span | null, Span | null]; // visible ranges of the two that are compared; null: all
  pair: { name: string; module: string } | null; // the function that is looked at in both
}

export const heights = [3, 6, 12, 16, 20, 22];

const sideKeys = ["ta", "tb"];

export function initial(): ViewState {
  return {
    tab: "timeline",
    reel: 0,
    visible: null,
    range: null,
    selected: null,
    find: "",
    scroll: 0,
    height: 0,
    collapsed: [],
    sort: "activity",
    colors: "function",
    scope: "all",
    lane: -1,
    order: "heavy",
    by: "wall",
    state: null,
    mark: null,
    said: true,
    ranged: "functions",
    filter: "",
    follow: false,
    sides: [null, null],
    pair: null,
  };
}

/** format writes what differs from initial. */
export function format(s: ViewState): string {
  const d = initial();
  const out: string[] = [];
  const put = (key: string, value: string | number) => out.push(`${key}=${encode(String(value))}`);
  if (s.tab !== d.tab) put("tab", s.tab);
  if (s.reel !== d.reel) put("reel", s.reel);
  if (s.visible) put("t", formatSpan(s.visible));
  if (s.range) put("range", formatSpan(s.range));
  if (s.selected) put("sel", `${s.selected.lane}.${s.selected.row}.${number(s.selected.at)}`);
  if (s.find) put("q", s.find);
  if (s.scroll > 0) put("y", Math.round(s.scroll * 10) / 10);
  if (s.height !== d.height) put("h", s.height);
  if (s.collapsed.length > 0) put("closed", s.collapsed.slice(0, 500).join("."));
  if (s.sort !== d.sort) put("sort", s.sort);
  if (s.colors !== d.colors) put("colors", s.colors);
  if (s.scope !== d.scope) put("of", s.scope);
  if (s.lane !== d.lane) put("lane", s.lane);
  if (s.order !== d.order) put("order", s.order);
  if (s.by !== d.by) put("by", s.by);
  if (s.state) put("st", `${s.state.lane}.${number(s.state.at)}`);
  if (s.mark) put("mk", `${s.mark.kind}.${s.mark.lane}.${s.mark.row}.${number(s.mark.at)}`);
  if (!s.said) put("said", 0);
  if (s.ranged !== d.ranged) put("ranged", s.ranged);
  if (s.filter) put("filter", s.filter);
  if (s.follow) put("follow", 1);
  s.sides.forEach((w, i) => w && put(sideKeys[i], formatSpan(w)));
  if (s.pair) {
    put("fn", s.pair.name);
    if (s.pair.module) put("in", s.pair.module);
  }
  return out.join("&");
}

function encode(v: string): string {
  return encodeURIComponent(v.slice(0, 1000)).replace(/%2C/g, ",").replace(/%3A/g, ":").replace(/%2F/g, "/");
}

function number(x: number): string {
  return String(Math.round(x * 1000) / 1000);
}

function formatSpan(s: Span): string {
  return `${number(s.from)}-${number(s.to)}`;
}

/** parse reads a hash, which anybody can have written: what makes no sense is left at its initial value. */
export function parse(hash: string): ViewState {
  const s = initial();
  for (const part of hash.replace(/^#/, "").split("&")) {
    const eq = part.indexOf("=");
    if (eq > 0) read(s, part.slice(0, eq), decode(part.slice(eq + 1)));
  }
  return s;
}

function decode(v: string): string {
  try {
    return decodeURIComponent(v);
  } catch {
    return "";
  }
}

function read(s: ViewState, key: string, v: string) {
  const d = initial();
  switch (key) {
    case "tab":
      s.tab = oneOf(tabs, v, d.tab);
      break;
    case "reel":
      s.reel = v === "1" ? 1 : 0;
      break;
    case "t":
      s.visible = parseSpan(v);
      break;
    case "range":
      s.range = parseSpan(v);
      break;
    case "sel":
      s.selected = parsePlace(v);
      break;
    case "q":
      s.find = v;
      break;
    case "y":
      s.scroll = natural(v) ?? 0;
      break;
    case "h":
      s.height = oneOf(heights, Number(v), d.height);
      break;
    case "closed":
      s.collapsed = v.split(".").map(Number).filter(Number.isSafeInteger);
      break;
    case "sort":
      s.sort = v;
      break;
    case "colors":
      s.colors = oneOf(["function", "image"] as const, v, d.colors);
      break;
    case "of":
      s.scope = v === "window" ? "visible" : oneOf(["all", "visible", "range"] as const, v, d.scope); // older links have "window"
      break;
    case "lane": {
      const n = natural(v);
      s.lane = n !== null && Number.isSafeInteger(n) ? n : -1;
      break;
    }
    case "order":
      s.order = oneOf(["heavy", "time"] as const, v, d.order);
      break;
    case "by":
      s.by = oneOf(["wall", "cpu", "ready", "blocked"] as const, v, d.by);
      break;
    case "st": {
      const p = parsePlace(v.replace(".", ".0."));
      s.state = p && { lane: p.lane, at: p.at };
      break;
    }
    case "mk": {
      const dot = v.indexOf(".");
      const kind = oneOf(markKinds, v.slice(0, dot), "span");
      const p = parsePlace(v.slice(dot + 1));
      s.mark = p && { kind, ...p };
      break;
    }
    case "said":
      s.said = v !== "0";
      break;
    case "ranged":
      s.ranged = oneOf(rangedKinds, v, d.ranged);
      break;
    case "filter":
      s.filter = v;
      break;
    case "follow":
      s.follow = v === "1";
      break;
    case "ta":
    case "tb":
      s.sides[sideKeys.indexOf(key)] = parseSpan(v);
      break;
    case "fn":
      s.pair = v ? { name: v, module: s.pair?.module ?? "" } : null;
      break;
    case "in":
      if (s.pair) s.pair.module = v;
  }
}

function oneOf<T>(all: readonly T[], v: unknown, otherwise: T): T {
  return all.includes(v as T) ? (v as T) : otherwise;
}

function natural(v: string): number | null {
  if (!/^\d+(\.\d+)?$/.test(v)) return null;
  const n = Number(v);
  return n <= Number.MAX_SAFE_INTEGER ? n : null;
}

function parseSpan(v: string): Span | null {
  const dash = v.indexOf("-");
  const from = natural(v.slice(0, dash));
  const to = natural(v.slice(dash + 1));
  return from !== null && to !== null && from < to ? { from, to } : null;
}

function parsePlace(v: string): Place | null {
  const m = /^(\d+)\.(\d+)\.(\d+(?:\.\d+)?)$/.exec(v);
  if (!m) return null;
  const [lane, row, at] = m.slice(1).map(natural);
  return lane !== null && row !== null && at !== null ? { lane, row, at } : null;
}
