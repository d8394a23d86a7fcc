// Colours by name: the same function or image has the same colour in every
// view, every run and both reels of a comparison.

/** Bytes is a colour as the canvas's memory has it on little-endian machines: 0xAABBGGRR. */
export type Bytes = number;

/** hash is FNV-1a over UTF-16 units, mixed at the end. */
export function hash(s: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < s.length; i++) h = Math.imul(h ^ s.charCodeAt(i), 0x01000193);
  h = Math.imul(h ^ (h >>> 16), 0x7feb352d);
  h = Math.imul(h ^ (h >>> 15), 0x846ca68b);
  return (h ^ (h >>> 16)) >>> 0;
}

/** oklch converts lightness 0..1, chroma and hue in degrees to sRGB (Björn Ottosson, 2020). */
export function oklch(l: number, c: number, h: number): [number, number, number] {
  const a = c * Math.cos((h * Math.PI) / 180);
  const b = c * Math.sin((h * Math.PI) / 180);
  const l_ = (l + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m_ = (l - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s_ = (l - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    gamma(4.0767416621 * l_ - 3.3077115913 * m_ + 0.2309699292 * s_),
    gamma(-1.2684380046 * l_ + 2.6097574011 * m_ - 0.3413193965 * s_),
    gamma(-0.0041960863 * l_ - 0.7034186147 * m_ + 1.707614701 * s_),
  ];
}

function gamma(x: number): number {
  const y = x <= 0.0031308 ? 12.92 * x : 1.055 * Math.pow(x, 1 / 2.4) - 0.055;
  return Math.max(0, Math.min(255, Math.round(y * 255)));
}

export function bytes([r, g, b]: [number, number, number]): Bytes {
  return (0xff000000 | (b << 16) | (g << 8) | r) >>> 0;
}

export function css(c: Bytes): string {
  return `rgb(${c & 255},${(c >> 8) & 255},${(c >> 16) & 255})`;
}

/** mix is share of a and the rest of b. */
export function mix(a: Bytes, b: Bytes, share: number): Bytes {
  const channel = (shift: number) => Math.round(((a >> shift) & 255) * share + ((b >> shift) & 255) * (1 - share)) << shift;
  return (0xff000000 | channel(16) | channel(8) | channel(0)) >>> 0;
}

/** Shade is a function's colour in its three forms. */
export interface Shade {
  full: Bytes; // one call
  tint: Bytes; // the ground of a merged bar
  dim: Bytes; // when something else is looked for
}

/** Scheme holds the colours of one theme that the canvases use. */
export interface Scheme {
  dark: boolean;
  ground: Bytes;
  stripe: Bytes; // every other lane
  idle: Bytes; // before a thread's first event and after its last
  rule: Bytes; // between lanes
  below: Bytes; // the last lane
  gapText: [string, string];
  gap: [Bytes, Bytes];
  text: string; // on bars
  faint: string; // on the ground
  strong: string; // on the ground
  line: string;
  accent: string;
  range: string;
  veil: string; // over what is outside the visible range
  busy: string; // of the overview
  trigger: string; // what a dump was made for
  states: StateColors;
  arrow: string; // from who ended a wait
  wait: Bytes; // stripes over calls that are blocked
  said: SaidColors;
  off: [Bytes, Bytes]; // functions were off: paper and stripes
  offText: [string, string]; // its ground, and what it says
  unheard: Bytes; // stripes over the lanes where what is looked for was off
}

/** SaidColors are those of what the program said, but for spans, which have colours of their own. */
export interface SaidColors {
  instant: Bytes;
  graph: [Bytes, Bytes]; // line and area
  flow: string;
  pause: [Bytes, Bytes]; // paper and stripes
  pauseText: [string, string];
}

/** StateColors are those of what threads do. */
export interface StateColors {
  running: Bytes;
  ready: Bytes;
  blocked: Bytes;
  uninterruptible: Bytes;
  minor: Bytes; // page faults
  major: Bytes;
}

const light: Scheme = {
  dark: false,
  ground: bytes([255, 255, 255]),
  stripe: bytes([248, 249, 251]),
  idle: bytes([238, 240, 243]),
  rule: bytes([223, 227, 233]),
  below: bytes([246, 247, 249]),
  gapText: ["#fff4e0", "#7a4500"],
  gap: [bytes([250, 224, 178]), bytes([193, 120, 23])],
  text: "#17202b",
  faint: "#5b6675",
  strong: "#1c2430",
  line: "#dfe3e9",
  accent: "#1456c4",
  range: "rgba(20,86,196,0.12)",
  veil: "rgba(238,241,245,0.66)",
  busy: "#7f9cc9",
  trigger: "#b3221a",
  wait: bytes([255, 255, 255]),
  said: {
    instant: bytes([134, 32, 152]),
    graph: [bytes([20, 96, 140]), bytes([190, 218, 234])],
    flow: "#0a7a6b",
    pause: [bytes([228, 231, 238]), bytes([150, 158, 174])],
    pauseText: ["#eceff5", "#3b4658"],
  },
  off: [bytes([205, 214, 236]), bytes([104, 120, 168])],
  offText: ["rgba(240,243,251,0.92)", "#34426c"],
  unheard: bytes([196, 206, 232]),
  arrow: "#a3157e",
  states: {
    running: bytes([38, 140, 92]),
    ready: bytes([240, 168, 28]),
    blocked: bytes([206, 212, 221]),
    uninterruptible: bytes([176, 98, 190]),
    minor: bytes([70, 84, 104]),
    major: bytes([196, 28, 40]),
  },
};

const dark: Scheme = {
  dark: true,
  ground: bytes([21, 24, 29]),
  stripe: bytes([25, 29, 35]),
  idle: bytes([15, 17, 21]),
  rule: bytes([43, 49, 58]),
  below: bytes([17, 20, 24]),
  gapText: ["#3a2a0e", "#ffd08a"],
  gap: [bytes([72, 52, 20]), bytes([214, 148, 50])],
  text: "#f3f5f8",
  faint: "#98a3b2",
  strong: "#e6eaf0",
  line: "#2b313a",
  accent: "#7db2ff",
  range: "rgba(125,178,255,0.16)",
  veil: "rgba(12,14,18,0.62)",
  busy: "#5b7bb0",
  trigger: "#ff8f85",
  wait: bytes([10, 12, 15]),
  said: {
    instant: bytes([224, 140, 240]),
    graph: [bytes([110, 190, 232]), bytes([34, 62, 80])],
    flow: "#5fd6c4",
    pause: [bytes([34, 38, 46]), bytes([88, 98, 114])],
    pauseText: ["#2a303a", "#c5cedb"],
  },
  off: [bytes([52, 62, 92]), bytes([128, 146, 200])],
  offText: ["rgba(30,36,54,0.92)", "#c3cff2"],
  unheard: bytes([58, 68, 100]),
  arrow: "#ff9be0",
  states: {
    running: bytes([64, 176, 120]),
    ready: bytes([226, 158, 40]),
    blocked: bytes([58, 66, 78]),
    uninterruptible: bytes([160, 92, 180]),
    minor: bytes([190, 202, 220]),
    major: bytes([255, 92, 96]),
  },
};

export function scheme(isDark: boolean): Scheme {
  return isDark ? dark : light;
}

/** spanShades are the colours of a span's title: a pale body, and a strong line above it, so that it isn't taken for a call. */
export function spanShades(title: string, s: Scheme): { body: Shade; line: Shade } {
  const h = hash("span " + title);
  const hue = (h % 36) * 10 + 9;
  const strong = bytes(oklch(s.dark ? 0.72 : 0.52, title === "" ? 0 : 0.13, hue));
  const body = mix(strong, s.ground, s.dark ? 0.3 : 0.2);
  const pale = mix(strong, s.ground, 0.1);
  return { body: { full: body, tint: pale, dim: mix(strong, s.ground, 0.06) }, line: { full: strong, tint: mix(strong, s.ground, 0.6), dim: mix(strong, s.ground, 0.2) } };
}

/** shade is the colour of a key, which is a function's or an image's name; the empty key is grey. */
export function shade(key: string, s: Scheme): Shade {
  const h = hash(key);
  // 36 hues are as many as can be told apart; lightness tells some more.
  const hue = (h % 36) * 10 + 4;
  const chroma = key === "" ? 0 : s.dark ? 0.09 : 0.088;
  const step = ((h >>> 8) % 3) * 0.03;
  const full = bytes(oklch((s.dark ? 0.43 : 0.785) + step, chroma, hue));
  return { full, tint: mix(full, s.ground, s.dark ? 0.5 : 0.45), dim: mix(full, s.ground, 0.22) };
}
