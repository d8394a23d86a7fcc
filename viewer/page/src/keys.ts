// The keyboard of the whole page. Tables, the flame graph and the overview have
// their own keys while they have the focus.

import type { LanesTab } from "./lanestab";
import type { Timeline } from "./timeline";
import { tabs, type Tab } from "./urlstate";

/** What the keys act on. */
export interface Desk {
  tab(): LanesTab;
  timeline(): Timeline | null; // the one on the screen
  open(tab: Tab): void;
  focusFind(): void;
  next(direction: 1 | -1): void;
  trigger(step: 1 | -1): void;
  earlier(): void;
  said(): void;
  pause(): void;
  theme(): void;
  help(): void;
  escape(): void;
  end(): void;
  useVisibleAsRange(): void;
}

export function listen(d: Desk) {
  document.addEventListener("keydown", (e) => {
    if (e.defaultPrevented || document.querySelector("dialog[open]")) return;
    if ((e.ctrlKey || e.metaKey) && !e.shiftKey && !e.altKey && e.key.toLowerCase() === "f") {
      e.preventDefault();
      d.focusFind();
      return;
    }
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.target instanceof HTMLInputElement || e.target instanceof HTMLSelectElement) {
      if (e.key === "Escape") e.target.blur();
      return;
    }
    const onButton = e.target instanceof HTMLButtonElement || e.target instanceof HTMLAnchorElement;
    if (onButton && (e.key === "Enter" || e.key === " ")) return;
    if (general(d, e) || lanes(d, e)) e.preventDefault();
  });
}

function general(d: Desk, e: KeyboardEvent): boolean {
  const act: Record<string, () => void> = {
    "/": () => d.focusFind(),
    "?": () => d.help(),
    n: () => d.next(1),
    N: () => d.next(-1),
    g: () => d.trigger(1),
    G: () => d.trigger(-1),
    b: () => d.earlier(),
    k: () => d.said(),
    p: () => d.pause(),
    t: () => d.theme(),
    Escape: () => d.escape(),
  };
  tabs.forEach((tab, i) => (act[String(i + 1)] = () => d.open(tab)));
  return run(act, e.key);
}

function lanes(d: Desk, e: KeyboardEvent): boolean {
  const t = d.timeline();
  if (!t) return false;
  if (e.shiftKey && e.key.startsWith("Arrow")) {
    const to = { ArrowLeft: "before", ArrowRight: "after", ArrowUp: "caller", ArrowDown: "callee" } as const;
    return run({ [e.key]: () => d.tab().step(to[e.key as keyof typeof to]) }, e.key);
  }
  // Held, a key repeats some 30 times a second; the first stroke is to be seen, too.
  const zoom = e.repeat ? 1.13 : 1.35;
  const pan = e.repeat ? 0.06 : 0.15;
  const down = t.rowHeight * (e.repeat ? 2 : 4);
  const act: Record<string, () => void> = {
    w: () => t.zoomBy(1 / zoom),
    s: () => t.zoomBy(zoom),
    "+": () => t.zoomBy(1 / zoom),
    "-": () => t.zoomBy(zoom),
    a: () => t.panBy(-pan),
    d: () => t.panBy(pan),
    ArrowLeft: () => t.panBy(-pan),
    ArrowRight: () => t.panBy(pan),
    ArrowUp: () => (t.top -= down),
    ArrowDown: () => (t.top += down),
    PageUp: () => (t.top -= t.size.height * 0.8),
    PageDown: () => (t.top += t.size.height * 0.8),
    Home: () => t.all(),
    "0": () => t.all(),
    End: () => d.end(),
    "[": () => d.tab().rows(-1),
    "]": () => d.tab().rows(1),
    c: () => t.collapseAll(t.closed.length === 0),
    Enter: () => d.tab().selectCentre(),
    f: () => d.tab().fitSelected(),
    m: () => d.tab().measureSelected(),
    r: () => d.useVisibleAsRange(),
    l: () => d.tab().longest(),
    y: () => d.tab().askWhy(),
    o: () => t.offStrip.open(t.target),
  };
  return run(act, e.key) || (e.key.length === 1 && run(act, e.key.toLowerCase()));
}

function run(act: Record<string, () => void>, key: string): boolean {
  if (!Object.hasOwn(act, key)) return false;
  act[key]();
  return true;
}
