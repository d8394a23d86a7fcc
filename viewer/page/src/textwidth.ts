// How wide texts are, from their characters' widths: asking the canvas for each text takes longer than painting it.

export class TextWidths {
  private font = "";
  private ascii = new Float64Array(128); // 0: not known yet
  private others = new Map<number, number>();

  constructor(private ctx: () => CanvasRenderingContext2D) {}

  /** use is to be called with the font that the canvas has, before anything else. */
  use(font: string) {
    if (font === this.font) return;
    this.font = font;
    this.ascii.fill(0);
    this.others.clear();
  }

  /** fitting is as much of the text as has space, with an ellipsis if that is not all, or nothing if next to nothing has. */
  fitting(text: string, space: number): string {
    const dots = this.character(0x2026);
    let width = 0;
    let short = 0; // characters that leave space for an ellipsis
    for (let i = 0; i < text.length; ) {
      const c = text.codePointAt(i)!;
      width += this.character(c);
      if (width > space) return short >= 2 ? text.slice(0, short) + "…" : "";
      i += c > 0xffff ? 2 : 1;
      if (width + dots <= space) short = i;
    }
    return text;
  }

  private character(c: number): number {
    if (c < 128) return this.ascii[c] || (this.ascii[c] = this.measure(c));
    let w = this.others.get(c);
    if (w === undefined) {
      if (this.others.size > 10000) this.others.clear();
      this.others.set(c, (w = this.measure(c)));
    }
    return w;
  }

  private measure(c: number): number {
    return this.ctx().measureText(String.fromCodePoint(c)).width;
  }
}
