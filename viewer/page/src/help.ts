// The keyboard help.

import { el } from "./dom";

const keys: [string, [string, string][]][] = [
  [
    "Move",
    [
      ["W S", "zoom in, out (to the pointer, else to the selection)"],
      ["A D  ← →", "go left, right"],
      ["↑ ↓", "scroll lanes"],
      ["Ctrl+wheel", "zoom to the pointer"],
      ["wheel, Shift+wheel, drag", "scroll, pan"],
      ["Home 0", "the whole recording"],
      ["End", "the end; follows it in a recording in progress"],
      ["[ ]", "lower, higher rows"],
      ["C", "fold, unfold all lanes"],
      ["P", "pause a recording in progress, go on with it"],
      ["K", "show, hide what the program said: spans, counters, instants, flows"],
    ],
  ],
  [
    "Select",
    [
      ["click, Enter", "the call, the span there; in the middle without a pointer"],
      ["Shift+← →", "the call, the span before, after it in its row"],
      ["Shift+↑ ↓", "its caller, its first call; the span around it, in it"],
      ["double-click, F", "fit the call, the span"],
      ["Y", "why it was slow, against ordinary calls"],
      ["click a span, an instant, a counter", "what the program said there, and its place among its like"],
      ["click in a row of states", "what its thread did then; who ended its wait"],
      ["M", "take its time as the range"],
      ["Shift+drag, drag on the ruler", "measure a range"],
      ["R", "take what is shown as the range"],
      ["Esc", "let go of range, then selection, then find"],
    ],
  ],
  [
    "Find and go",
    [
      ["/ Ctrl+F", "find functions, spans, counters and instants by name, or by a glob such as ngx_*_handler"],
      ["N  Shift+N", "next, previous match (Enter, Shift+Enter in the box)"],
      ["O, click in the strip above the lanes", "functions that were off, for what their calls cost: in what is shown, there"],
      ["L", "longest call of the selected function, longest span of the selected title"],
      ["1 … 5", "timeline, flame graph, call tree, functions, compare"],
      ["G  Shift+G", "of a dump: what it was made for; the next, previous trigger"],
      ["B", "of a dump: what is before its window, too"],
      ["T", "light, dark, as the system"],
      ["Alt+← →", "back, forward: every jump is in the history"],
      ["?", "this help"],
    ],
  ],
];

export function helpDialog(): HTMLDialogElement {
  const dialog = el("dialog", { class: "help", "aria-label": "Keyboard help" });
  const close = el("button", { class: "close", "aria-label": "Close", onclick: () => dialog.close() }, "✕");
  dialog.append(
    el("header", {}, el("h2", {}, "Keyboard and pointer"), close),
    el(
      "div",
      { class: "help-columns" },
      ...keys.map(([title, list]) =>
        el("section", {}, el("h3", {}, title), el("dl", {}, ...list.flatMap(([k, what]) => [el("dt", {}, ...k.split("  ").flatMap((p, i) => [i > 0 ? " " : null, el("kbd", {}, p)])), el("dd", {}, what)]))),
      ),
    ),
    el(
      "p",
      { class: "legend" },
      "The row above a thread’s calls: ",
      el("span", { class: "sample state-cpu" }),
      "on a processor ",
      el("span", { class: "sample state-ready" }),
      "ready, but not on one ",
      el("span", { class: "sample state-blocked" }),
      "blocked ",
      el("span", { class: "sample state-uninterruptible" }),
      "blocked in state D (disk, swap) ",
      el("span", { class: "sample state-unknown" }),
      "not known; ticks are page faults, the red ones with input. Calls are hatched ",
      el("span", { class: "sample hatched" }),
      "where their thread was blocked, and have sparse stripes ",
      el("span", { class: "sample striped" }),
      "where it was ready.",
    ),
    el(
      "p",
      { class: "legend" },
      el("span", { class: "sample call" }),
      "one call ",
      el("span", { class: "sample merged" }),
      "calls too narrow to be drawn one by one; the filled part is the share of time in calls ",
      el("span", { class: "sample lost" }),
      "events were lost, or are missing from a dump ",
      el("span", { class: "sample idle" }),
      "before a thread’s first event, after its last",
    ),
    el(
      "p",
      { class: "legend" },
      el("span", { class: "sample span" }),
      "a span, which the program marked; its edge is torn where its beginning or end is not in the recording ",
      el("span", { class: "sample instant" }),
      "an instant ",
      el("span", { class: "sample graph" }),
      "a counter; where a pixel has several values, a line from the least to the greatest ",
      el("span", { class: "sample paused" }),
      "the recording was paused ",
      el("span", { class: "sample off" }),
      "functions were off: their calls were not recorded; the lanes have such stripes where what is found or selected was off",
    ),
  );
  dialog.addEventListener("click", (e) => {
    if (e.target === dialog) dialog.close();
  });
  return dialog;
}
