// Names come out of the recorded program and can hold anything. They are only
// ever shown as text; what would be invisible in it, or turn it around, is made visible.

// Controls, bidirectional controls, zero-width and other characters without a
// form, line separators, variation selectors, private use, tags, and lone surrogates.
const invisible =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202f\u205f-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\u{e0000}-\u{e0fff}]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/gu;

/** showInvisible is the name with each such character written as its code: "a‹202E›b". */
export function showInvisible(name: string): string {
  return name.replace(invisible, (c) => {
    const code = c.codePointAt(0)!;
    return `‹${code.toString(16).toUpperCase().padStart(code < 0x100 ? 2 : 4, "0")}›`;
  });
}

/** cut shortens a text to at most length characters, leaving out its middle: both ends of a name tell much. */
export function cut(text: string, length: number): string {
  if (text.length <= length) return text;
  const tail = Math.floor((length - 1) / 3);
  let head = length - 1 - tail;
  if (isHigh(text.charCodeAt(head - 1))) head--;
  let from = text.length - tail;
  if (isHigh(text.charCodeAt(from - 1))) from++;
  return text.slice(0, head) + "…" + text.slice(from);
}

function isHigh(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00;
}

/** shown is what most places show of a name. */
export function shown(name: string, length = 240): string {
  // What is far too long is cut before it is looked at.
  const v = showInvisible(name.length > 4 * length ? cut(name, 2 * length) : name);
  return v === "" ? "(no name)" : cut(v, length);
}

/** brief is a name for the little room of a bar: without parameters and template arguments. */
export function brief(name: string): string {
  const v = shown(name, 400);
  let depth = 0;
  let out = "";
  for (const c of v) {
    if (c === "<" && !out.endsWith("operator")) {
      if (depth++ === 0) out += "<";
      continue;
    }
    if (c === ">" && depth > 0) {
      if (--depth === 0) out += out.endsWith("<") ? "…>" : ">";
      continue;
    }
    if (depth > 0) continue;
    if (c === "(" && out !== "" && !out.endsWith("operator") && !out.endsWith("::")) break;
    out += c;
  }
  return depth > 0 || out.trim() === "" ? v : out.trimEnd();
}
