// Light, dark, or as the system has it.

import { scheme, type Scheme } from "./color";

export type Choice = "auto" | "light" | "dark";
const choices: Choice[] = ["auto", "light", "dark"];
const key = "callreel-theme";

export class Theme {
  private system = matchMedia("(prefers-color-scheme: dark)");
  // Kept, as asking Chromium for it at the wrong moment makes it forget to tell of a change.
  private systemDark = this.system.matches;
  choice: Choice = "auto";

  constructor(private changed: () => void) {
    try {
      const kept = localStorage.getItem(key) as Choice;
      if (choices.includes(kept)) this.choice = kept;
    } catch {
      // Where nothing may be kept, it is as the system has it.
    }
    this.system.addEventListener("change", (e) => {
      this.systemDark = e.matches;
      this.apply();
    });
    this.mark();
  }

  get dark(): boolean {
    return this.choice === "auto" ? this.systemDark : this.choice === "dark";
  }

  scheme = (): Scheme => scheme(this.dark);

  /** next goes from auto to light to dark. */
  next() {
    this.choice = choices[(choices.indexOf(this.choice) + 1) % choices.length];
    try {
      localStorage.setItem(key, this.choice);
    } catch {
      // As above.
    }
    this.apply();
  }

  private apply() {
    this.mark();
    this.changed();
  }

  private mark() {
    document.documentElement.dataset.theme = this.dark ? "dark" : "light";
  }
}
