/**
 * The label of a box in the graph: how much it covers, then its first words, as far as they fit. A line that does not fit is omitted or ends
 * with an ellipsis; no character is cut off. In a box too narrow for a line the text is vertical.
 */
import { formatCount, formatDay, formatShort } from "./format.ts";
import type { GraphNode } from "../src/api-types.ts";
import { wrap } from "./wrap-words.ts";
import type { Measure } from "./wrap-words.ts";

export interface LabelBox {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

const LINE_PX = 17;
const PAD_PX = 8;
/** Narrower than this, text is vertical; narrower than the second, there is none. */
const LEAST_ACROSS_PX = 64;
const LEAST_UPWARDS_PX = 15;
const LEAST_UPWARDS_HEIGHT_PX = 64;
const FACTS_FONT = "600 12px system-ui, sans-serif";
const WORDS_FONT = "12px system-ui, sans-serif";

/** Whether a box has room for more than numbers. */
export const hasRoomForWords = ({ width, height }: Pick<LabelBox, "width" | "height">): boolean =>
  width >= LEAST_ACROSS_PX
    ? height >= 3 * LINE_PX
    : width >= 2 * LINE_PX + 4 && height >= LEAST_UPWARDS_HEIGHT_PX;

export function paintLabel(
  pen: CanvasRenderingContext2D,
  node: GraphNode,
  words: string,
  box: LabelBox,
  colour: string,
): void {
  pen.fillStyle = colour;
  if (box.width >= LEAST_ACROSS_PX && box.height >= LINE_PX) paintAcross(pen, node, words, box);
  else if (box.width >= LEAST_UPWARDS_PX && box.height >= LEAST_UPWARDS_HEIGHT_PX)
    paintUpwards(pen, node, words, box);
  pen.font = WORDS_FONT;
}

function paintAcross(pen: CanvasRenderingContext2D, node: GraphNode, words: string, box: LabelBox): void {
  const room = box.width - 2 * PAD_PX;
  const count = Math.floor((box.height - 4) / LINE_PX);
  pen.font = FACTS_FONT;
  const facts = fitFacts(node, room, (text) => pen.measureText(text).width).slice(0, Math.max(1, count));
  const first = count <= 1 ? box.y + box.height / 2 : box.y + 14;
  for (const [index, line] of facts.entries()) pen.fillText(line, box.x + PAD_PX, first + index * LINE_PX);
  pen.font = WORDS_FONT;
  const lines = wrap(words, room, count - facts.length, (text) => widthOf(pen, text));
  for (const [index, line] of lines.entries())
    pen.fillText(line, box.x + PAD_PX, first + (facts.length + index) * LINE_PX);
}

/** The same turned by a quarter: as many lines as the box is wide. */
function paintUpwards(pen: CanvasRenderingContext2D, node: GraphNode, words: string, box: LabelBox): void {
  pen.font = FACTS_FONT;
  const room = box.height - 2 * PAD_PX;
  const count = Math.max(1, Math.floor((box.width - 4) / LINE_PX));
  const [facts] = [
    `${formatCount(node.messages)} messages · ${formatShort(node.tokens)} tokens`,
    `${formatShort(node.messages)} msgs`,
    formatShort(node.messages),
  ].filter((text) => pen.measureText(text).width <= room);
  if (facts === undefined) return;
  pen.save();
  pen.rotate(-Math.PI / 2);
  // Turned, the box begins at its lower left corner.
  const first = box.x + (box.width - (count - 1) * LINE_PX) / 2;
  pen.fillText(facts, -(box.y + box.height - PAD_PX), first);
  pen.font = WORDS_FONT;
  const lines = wrap(words, room, count - 1, (text) => widthOf(pen, text));
  for (const [index, line] of lines.entries())
    pen.fillText(line, -(box.y + box.height - PAD_PX), first + (index + 1) * LINE_PX);
  pen.restore();
}

/** On one line if it fits, otherwise on several; each in the longest form that fits. */
function fitFacts(node: GraphNode, room: number, measure: Measure): string[] {
  const isStandIn = node.isRoot && node.state === "reserve";
  const messages = `${formatCount(node.messages)} ${node.messages === 1 ? "message" : "messages"}`;
  const tokens = `${formatShort(node.tokens)} tokens`;
  const days = [...new Set([formatDay(node.earliestAt), formatDay(node.latestAt)])].join(" to ");
  const whole = [isStandIn ? `root, covers ${messages}` : messages, tokens, days].join(" · ");
  const [line] = [whole, `${messages} · ${tokens}`].filter((text) => measure(text) <= room);
  if (line !== undefined) return [line];
  const fit = (...forms: string[]): string[] => forms.filter((text) => measure(text) <= room).slice(0, 1);
  return [
    ...fit(messages, `${formatShort(node.messages)} msgs`, formatShort(node.messages)),
    ...fit(tokens, `${formatShort(node.tokens)} tok`),
  ];
}

/** Words repeat from box to box and from frame to frame; measuring them is most of the cost of a label. */
const widths = new Map<string, number>();
const MAX_WIDTHS = 20_000;

function widthOf(pen: CanvasRenderingContext2D, text: string): number {
  const known = widths.get(text);
  if (known !== undefined) return known;
  if (widths.size >= MAX_WIDTHS) widths.clear();
  const { width } = pen.measureText(text);
  widths.set(text, width);
  return width;
}
