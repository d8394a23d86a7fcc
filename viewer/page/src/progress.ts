// How far an analysis is that takes longer than a moment.

import { el } from "./dom";
import { listenTo } from "./live";

// Most answers are there before; each stream takes one of the browser's few connections.
const patience = 300; // ms

/** Progress names a request, and says in an element how far that is, beside a button that gives it up. */
export class Progress {
  readonly ticket = `p${Math.random().toString(36).slice(2, 14)}`;
  readonly element: HTMLElement;
  private text = document.createTextNode("counting…");
  private events: EventSource | null = null;
  private timer: ReturnType<typeof setTimeout>;

  constructor(cancel: () => void) {
    const button = el("button", { class: "cancel", hidden: true, onclick: cancel }, "Cancel");
    this.element = el("span", { class: "progress" }, this.text, button);
    this.timer = setTimeout(() => {
      button.hidden = false;
      this.events = listenTo({ progress: () => {}, grown: () => {}, closed: () => {}, analysis: (ticket, share) => ticket === this.ticket && this.tell(share) });
    }, patience);
  }

  private tell(share: number) {
    this.text.data = `counting… ${Math.floor(100 * share)} %`;
    this.element.dataset.share = String(share);
  }

  end() {
    clearTimeout(this.timer);
    this.events?.close();
  }
}
