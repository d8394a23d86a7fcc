// The page of callreel view.

import { open, type App } from "./app";
import { el, replace } from "./dom";
import { shown } from "./names";

declare global {
  interface Window {
    /** The page's parts, for tests and measurements; README.md beside says which. */
    callreel?: App;
  }
}

open().then(
  (app) => {
    window.callreel = app;
    document.documentElement.dataset.ready = "yes";
  },
  (err: unknown) => {
    const text = shown(String((err as Error)?.message ?? err), 600);
    replace(document.body, el("div", { class: "indexing", role: "alert" }, el("h1", {}, "The recording can't be shown"), el("p", {}, text)));
    document.documentElement.dataset.ready = "failed";
  },
);
