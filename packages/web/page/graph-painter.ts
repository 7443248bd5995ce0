/**
 * Draws the graph of summaries: boxes by depth and by what they cover, lines from each to its sources, the messages at the bottom, and the days
 * below. Draws only what is visible; knows the location of everything, to find what is under the pointer.
 */
import { colourOfDepth, readColours } from "./canvas.ts";
import type { Colours, Surface } from "./canvas.ts";
import { formatCount, formatDay, formatTime } from "./format.ts";
import { hasRoomForWords, paintLabel } from "./graph-label.ts";
import type { GraphLayout, LayoutNode } from "./graph-layout.ts";

const GAP_PX = 2;
const AXIS_PX = 26;
const TAIL_PX = 26;
const RADIUS_PX = 5;
/** With more than this many in view, lines between them are only noise. */
const MAX_EDGES = 3_000;

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** What to draw, and the visible part. */
export interface Scene {
  readonly placed: GraphLayout;
  readonly sources: ReadonlyMap<string, readonly string[]>;
  /** Messages from the start to the end of the conversation. */
  readonly totalWidth: number;
  /** Messages at the left edge, and pixels per message. */
  readonly left: number;
  readonly scale: number;
  /** Ancestors and descendants of the chosen summary; empty: none is chosen. */
  readonly near: ReadonlySet<string>;
  readonly selected: string | null;
  readonly hovered: string | null;
  /** The first words of a summary; empty until loaded. */
  readonly wordsOf: (summaryId: string) => string;
  /** A message to mark, in messages from the start. */
  readonly pin: { readonly x: number; readonly name: string } | null;
}

export function paintGraph({ pen, width, height }: Surface, scene: Scene): void {
  const colours = readColours();
  const { placed, near } = scene;
  const frame = frameOf(scene, height);
  const seen = placed.nodes.filter(
    ({ x, width: w }) => x + w >= scene.left && x <= scene.left + width / scene.scale,
  );
  pen.font = "12px system-ui, sans-serif";
  pen.textBaseline = "middle";
  if (seen.length <= MAX_EDGES) paintEdges(pen, seen, scene, frame, colours);
  if (scene.pin !== null) paintPinLine(pen, scene, frame, colours.accent);
  for (const one of seen) paintNode(pen, one, scene, boxOf(one, scene, frame), colours);
  pen.globalAlpha = 1;
  paintMessages(pen, width, scene, frame.base, colours);
  paintDays(pen, width, height, scene, colours.faint);
  if (scene.pin !== null) paintPin(pen, scene.pin, scene, colours);
  if (near.size === 0) paintDepths(pen, scene, frame, colours);
}

/** The summary at a point of the drawing. */
export function findAt(scene: Scene, x: number, y: number, height: number): LayoutNode | null {
  const { base, rowHeight } = frameOf(scene, height);
  const row = Math.floor((base - y) / rowHeight);
  const at = scene.left + x / scene.scale;
  return (
    (scene.placed.rows[row] ?? []).findLast(
      (placed) => placed.x <= at && at <= placed.x + Math.max(placed.width, 3 / scene.scale),
    ) ?? null
  );
}

interface Frame {
  /** The bottom of the lowest row. */
  readonly base: number;
  readonly rowHeight: number;
}

function frameOf({ placed }: Scene, height: number): Frame {
  const base = height - AXIS_PX - TAIL_PX;
  return { base, rowHeight: base / Math.max(1, placed.rows.length) };
}

/** Summaries whose first words are legible at this size. */
export function listLegible(scene: Scene, width: number, height: number): string[] {
  const frame = frameOf(scene, height);
  return scene.placed.nodes.flatMap((one) => {
    const box = boxOf(one, scene, frame);
    const isSeen = box.x + box.width > 0 && box.x < width;
    return isSeen && hasRoomForWords(box) ? [one.node.summaryId] : [];
  });
}

function boxOf({ x, width, row }: LayoutNode, scene: Scene, { base, rowHeight }: Frame): Box {
  const gap = Math.min(22, rowHeight * 0.24);
  const wide = width * scene.scale;
  return {
    x: (x - scene.left) * scene.scale,
    width: Math.max(0.75, wide - (wide > 4 ? GAP_PX : 0)),
    y: base - (row + 1) * rowHeight + gap,
    height: Math.max(2, rowHeight - gap),
  };
}

function paintNode(
  pen: CanvasRenderingContext2D,
  { node }: LayoutNode,
  { near, selected, hovered, wordsOf }: Scene,
  box: Box,
  colours: Colours,
): void {
  const isFold = node.state === "cover";
  const isMarked = node.summaryId === selected || node.summaryId === hovered;
  const isDimmed = near.size > 0 && !near.has(node.summaryId);
  pen.globalAlpha = isDimmed ? 0.22 : 1;
  pen.beginPath();
  if (box.width > 2 * RADIUS_PX) pen.roundRect(box.x, box.y, box.width, box.height, RADIUS_PX);
  else pen.rect(box.x, box.y, box.width, box.height);
  const colour = colourOfDepth(colours, node.depth);
  if (isFold) {
    pen.fillStyle = colour;
    pen.fill();
  } else {
    pen.fillStyle = colours.panel;
    pen.fill();
    pen.strokeStyle = colour;
    pen.lineWidth = 1.5;
    pen.setLineDash([5, 3]);
    pen.stroke();
    pen.setLineDash([]);
  }
  if (isMarked) {
    pen.globalAlpha = 1;
    pen.strokeStyle = colours.text;
    pen.lineWidth = 2.5;
    pen.stroke();
  }
  if (!isDimmed || isMarked)
    paintLabel(pen, node, wordsOf(node.summaryId), box, isFold ? colours.onDepth : colours.text);
}

/** Between a summary and each of its sources, in the gap between the rows. */
function paintEdges(
  pen: CanvasRenderingContext2D,
  seen: readonly LayoutNode[],
  scene: Scene,
  frame: Frame,
  colours: Colours,
): void {
  const { placed, sources, near } = scene;
  for (const one of seen) {
    const from = boxOf(one, scene, frame);
    for (const id of sources.get(one.node.summaryId) ?? []) {
      const source = placed.byId.get(id);
      if (source === undefined) continue;
      const to = boxOf(source, scene, frame);
      const isNear = near.has(id) && near.has(one.node.summaryId);
      if (from.width < 4 && !isNear) continue;
      pen.strokeStyle = isNear ? colours.accent : colours.edge;
      pen.lineWidth = isNear ? 2.5 : 1.5;
      const x = to.x + to.width / 2;
      const start = Math.max(from.x + 6, Math.min(from.x + from.width - 6, x));
      const [y1, y2] = [from.y + from.height, to.y];
      pen.beginPath();
      pen.moveTo(start, y1);
      pen.bezierCurveTo(start, (y1 + y2) / 2, x, (y1 + y2) / 2, x, y2);
      pen.stroke();
    }
  }
}

/** The messages themselves: under summaries, and unfolded after them. */
function paintMessages(
  pen: CanvasRenderingContext2D,
  width: number,
  { placed, totalWidth, left, scale }: Scene,
  base: number,
  colours: Colours,
): void {
  const folded = (placed.foldedWidth - left) * scale;
  const open = Math.max(0, folded);
  const [y, height] = [base + 6, TAIL_PX - 8];
  pen.fillStyle = colours.message;
  pen.globalAlpha = 0.25;
  pen.fillRect(0, y, Math.min(width, folded), height);
  pen.globalAlpha = 1;
  pen.fillRect(open, y, Math.max(0, (totalWidth - left) * scale - open), height);
  pen.fillStyle = colours.text;
  if (folded > 190) pen.fillText(`${formatCount(placed.foldedWidth)} messages, folded`, 8, y + height / 2);
  const rest = `${formatCount(totalWidth - placed.foldedWidth)} in full`;
  if (width - folded > pen.measureText(rest).width + 12) {
    pen.fillStyle = colours.onDepth;
    pen.fillText(rest, open + 6, y + height / 2);
  }
}

function paintDays(
  pen: CanvasRenderingContext2D,
  width: number,
  height: number,
  { placed, left, scale }: Scene,
  colour: string,
): void {
  pen.fillStyle = colour;
  let free = 0;
  let lastDay = "";
  for (const { node, x } of placed.rows[0] ?? []) {
    const at = (x - left) * scale;
    if (at < free || at > width - 80) continue;
    const day = formatDay(node.earliestAt);
    // Hours if the day is the same as before.
    pen.fillText(day === lastDay ? formatTime(node.earliestAt).slice(-5) : day, at + 2, height - AXIS_PX / 2);
    lastDay = day;
    free = at + 116;
  }
}

/** From the chosen message up to the root, behind the boxes. */
function paintPinLine(
  pen: CanvasRenderingContext2D,
  { pin, left, scale }: Scene,
  { base }: Frame,
  colour: string,
): void {
  const at = ((pin?.x ?? 0) - left) * scale;
  pen.strokeStyle = colour;
  pen.lineWidth = 2;
  pen.setLineDash([2, 4]);
  pen.beginPath();
  pen.moveTo(at, 18);
  pen.lineTo(at, base + TAIL_PX);
  pen.stroke();
  pen.setLineDash([]);
}

/** The name of the chosen message, and its place among all. */
function paintPin(
  pen: CanvasRenderingContext2D,
  { x, name }: { readonly x: number; readonly name: string },
  { left, scale }: Scene,
  colours: Colours,
): void {
  const at = (x - left) * scale;
  const wide = pen.measureText(name).width + 14;
  const from = Math.max(2, at - wide / 2);
  pen.fillStyle = colours.accent;
  pen.beginPath();
  pen.roundRect(from, 2, wide, 20, 10);
  pen.fill();
  pen.fillStyle = colours.panel;
  pen.fillText(name, from + 7, 12);
}

function paintDepths(
  pen: CanvasRenderingContext2D,
  { placed }: Scene,
  { base, rowHeight }: Frame,
  colours: Colours,
): void {
  if (rowHeight < 60) return;
  for (const [row, depth] of placed.depths.entries()) {
    const label = placed.depths[row - 1] === depth ? `depth ${depth}, more` : `depth ${depth}`;
    const y = base - (row + 1) * rowHeight + 11;
    // Lines to sources pass here; the text is in front of them.
    pen.fillStyle = colours.panel;
    pen.fillRect(4, y - 8, pen.measureText(label).width + 8, 16);
    pen.fillStyle = colours.faint;
    pen.fillText(label, 8, y);
  }
}
