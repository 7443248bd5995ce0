/**
 * The items of a context as blocks: sized by tokens and coloured by depth, wrapped in rows of equal length like words in lines. A tooltip says
 * what a block is and why it is there; a click chooses it.
 */
import type { ExplainedItem } from "./api.ts";
import { Canvas, colourOfDepth, readColours } from "./canvas.ts";
import type { Surface } from "./canvas.ts";
import { fill, h, textNodes } from "./dom.ts";
import { formatCount } from "./format.ts";
import { cutWord } from "./wrap-words.ts";

const ROWS = 5;
const GAP_PX = 5;
const TIP_PX = 300;
const LEAST_LABEL_PX = 110;

export interface StripContent {
  readonly items: readonly ExplainedItem[];
  readonly budgetTokens: number;
  readonly isNew: (index: number) => boolean;
  /** The first words of an item; empty while they are not known. */
  readonly wordsOf: (index: number) => string;
  readonly selected: number;
}

export class TokenStrip {
  readonly element: HTMLElement;
  readonly #canvas: Canvas;
  readonly #tip = h("div", { class: "tip", role: "status", hidden: true });
  #content: StripContent = {
    items: [],
    budgetTokens: 1,
    isNew: () => false,
    wordsOf: () => "",
    selected: -1,
  };

  constructor(onSelect: (index: number) => void) {
    this.#canvas = new Canvas(
      "Items of the context in order, each as wide as its tokens. Arrow keys go from one to the next.",
      "strip",
      (surface) => this.#draw(surface),
    );
    const canvas = this.#canvas.element;
    this.element = h("div", { class: "strip-box" }, canvas, this.#tip);
    canvas.addEventListener("click", (event) => onSelect(this.#hit(event)));
    canvas.addEventListener("pointermove", (event) => this.#hover(event));
    canvas.addEventListener("pointerleave", () => {
      this.#tip.hidden = true;
    });
  }

  show(content: StripContent): void {
    this.#content = content;
    this.#canvas.update();
  }

  close(): void {
    this.#canvas.close();
  }

  #draw({ pen, width, height }: Surface): void {
    const { items, isNew, wordsOf, selected } = this.#content;
    const colours = readColours();
    let labelled = -1;
    const rowHeight = (height - GAP_PX * (ROWS - 1)) / ROWS;
    // The remaining room.
    pen.fillStyle = colours.line;
    pen.globalAlpha = 0.35;
    for (let row = 0; row < ROWS; row++) pen.fillRect(0, row * (rowHeight + GAP_PX), width, rowHeight);
    this.#eachPiece(width, (index, row, x, pieceWidth) => {
      const y = row * (rowHeight + GAP_PX);
      const item = items[index];
      const wide = Math.max(0.6, pieceWidth - (pieceWidth > 3 ? 1.5 : 0));
      pen.globalAlpha = 1;
      pen.fillStyle = colours.panel;
      pen.fillRect(x, y, pieceWidth, rowHeight);
      pen.globalAlpha = item?.kind === "range" ? 0.45 : 1;
      pen.fillStyle = colourOfDepth(colours, item?.depth ?? -1);
      pen.fillRect(x, y, wide, rowHeight);
      pen.globalAlpha = 1;
      if (index === selected || isNew(index)) {
        pen.fillStyle = index === selected ? colours.text : colours.accent;
        pen.fillRect(x, y + rowHeight - 4, wide, 4);
      }
      if (wide < LEAST_LABEL_PX || index === labelled || item?.kind === "range") return;
      // A block that goes on in the next row is named once.
      labelled = index;
      pen.font = "12px system-ui, sans-serif";
      pen.textBaseline = "middle";
      pen.fillStyle = colours.onDepth;
      const label = cutWord(wordsOf(index), wide - 14, (text) => pen.measureText(text).width);
      pen.fillText(label, x + 7, y + rowHeight / 2);
    });
  }

  #eachPiece(width: number, visit: (index: number, row: number, x: number, width: number) => void): void {
    const { items, budgetTokens } = this.#content;
    const total = Math.max(
      1,
      items.reduce((sum, { tokens }) => sum + tokens, 0),
    );
    // The free part of the budget stays empty, unless the context is a small part of it.
    const perRow = Math.max(total, Math.min(budgetTokens, total * 1.6)) / ROWS;
    let at = 0;
    for (const [index, { tokens }] of items.entries()) {
      for (let left = tokens; left > 0;) {
        const row = Math.min(ROWS - 1, Math.floor(at / perRow + 1e-9));
        const room = row === ROWS - 1 ? left : Math.max(1e-6, (row + 1) * perRow - at);
        const taken = Math.min(left, room);
        visit(index, row, ((at - row * perRow) / perRow) * width, (taken / perRow) * width);
        at += taken;
        left -= taken;
      }
    }
  }

  #hit({ offsetX, offsetY }: MouseEvent): number {
    const { clientWidth, clientHeight } = this.#canvas.element;
    const row = Math.floor(offsetY / ((clientHeight + GAP_PX) / ROWS));
    let found = -1;
    this.#eachPiece(clientWidth, (index, pieceRow, left, width) => {
      if (pieceRow === row && offsetX >= left && offsetX <= left + Math.max(width, 2)) found = index;
    });
    return found;
  }

  #hover(event: PointerEvent): void {
    const index = this.#hit(event);
    const { items, wordsOf } = this.#content;
    const item = items[index];
    this.#tip.hidden = item === undefined;
    if (item === undefined) return;
    fill(
      this.#tip,
      h("b", {}, ...textNodes(wordsOf(index) || item.ids.join(" … ") || item.kind)),
      h("br"),
      `${formatCount(item.tokens)} tokens, ${item.depth < 0 ? (item.role ?? item.kind) : `depth ${item.depth}`}`,
      h("br"),
      ...textNodes(item.reason),
    );
    this.#tip.style.left = `${Math.max(4, Math.min(event.offsetX + 14, this.#canvas.element.clientWidth - TIP_PX))}px`;
    this.#tip.style.top = `${event.offsetY + 16}px`;
  }
}
