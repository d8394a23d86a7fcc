// What each pixel column of an answer shows. A row with more bars than a frame has time for
// is painted from its columns: looking at a number for each pixel takes the same time whatever is there.

import type { Row } from "./decode";
import { looks } from "./palette";

/** Grid is how an answer is divided into columns. */
export interface Grid {
  from: number; // ns
  to: number;
  width: number; // columns
}

/** Rows with fewer bars are painted bar by bar. */
export const many = 300;

// A column is 0 where there is nothing, else where the palette has its colours, and above that how busy merged calls are.
const looksBits = 25;
export const looksMask = (1 << looksBits) - 1;
const busiest = 127;

/** busyOf is how busy merged calls are: 1 to levels - 1; 0: it is one call. */
export function busyOf(column: number): number {
  return column >>> looksBits;
}

export const levels = busiest + 1;

/** columnsOf makes the columns of a row, if it has that many bars. */
export function columnsOf(r: Row, g: Grid): Uint32Array | null {
  const { start, duration, busy, func, calls } = r;
  const n = start.length;
  if (n <= many || !(g.to > g.from)) return null;
  const columns = new Uint32Array(g.width);
  const scale = g.width / (g.to - g.from);
  for (let i = 0; i < n; i++) {
    if (looks(func[i]) >= looksMask) return null;
    const left = (start[i] - g.from) * scale;
    const right = (start[i] + duration[i] - g.from) * scale;
    const x0 = left <= 0 ? 0 : left >= g.width ? g.width - 1 : Math.floor(left);
    let x1 = right >= g.width ? g.width : Math.floor(right);
    if (x1 <= x0) x1 = x0 + 1;
    const merged = calls[i] > 1;
    const share = busy[i] < duration[i] ? busy[i] / duration[i] : 1;
    const column = merged ? (looks(func[i]) + 1) | (Math.max(1, Math.round(busiest * share)) << looksBits) : looks(func[i]);
    // As in painting bars, a column is left free between calls that are wide enough.
    if (!merged && x1 - x0 > 3) x1--;
    if (x1 - x0 === 1) columns[x0] = column;
    else columns.fill(column, x0, x1);
  }
  return columns;
}
