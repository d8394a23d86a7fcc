// Making elements. Text goes in as text nodes only.

type Attributes = Record<string, string | number | boolean | EventListener | undefined>;
export type Child = Node | string | null | undefined | false;

/** el makes an element. Attributes that begin with "on" are listeners; false and undefined leave one out. */
export function el<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const e = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") e.addEventListener(key.slice(2), value);
    else if (value === true) e.setAttribute(key, "");
    else if (value !== false && value !== undefined) e.setAttribute(key, String(value));
  }
  e.append(...children.filter((c): c is Node | string => c !== null && c !== undefined && c !== false));
  return e;
}

export function replace(e: Element, ...children: Child[]) {
  e.replaceChildren(...children.filter((c): c is Node | string => c !== null && c !== undefined && c !== false));
}

/** select is a drop-down list. */
export function select(label: string, options: [value: string, title: string][], value: string, change: (v: string) => void): HTMLSelectElement {
  const s = el("select", { "aria-label": label, title: label }, ...options.map(([v, t]) => el("option", { value: v }, t)));
  s.value = value;
  s.addEventListener("change", () => change(s.value));
  return s;
}

/** fitCanvas gives the canvas as many pixels as the screen has for it, and says whether it changed. */
export function fitCanvas(canvas: HTMLCanvasElement, width: number, height: number): boolean {
  const ratio = window.devicePixelRatio || 1;
  const w = Math.max(1, Math.round(width * ratio));
  const h = Math.max(1, Math.round(height * ratio));
  if (canvas.width === w && canvas.height === h) return false;
  canvas.width = w;
  canvas.height = h;
  return true;
}

/** debounce calls f once, ms after the last call. */
export function debounce(f: () => void, ms: number): () => void {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = window.setTimeout(f, ms);
  };
}
