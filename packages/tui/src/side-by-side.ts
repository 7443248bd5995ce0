/** The difference between two texts, the old on the left and the new on the right, for any width. Pure. Markers show it without colour, too. */
import { type DiffLine, diffLines, makePrintable, wrapToWidth } from "@lossless/core/doors";
import { padLine, type Paint } from "./paint.ts";

export interface SidePair {
  /** Null: no such line on this side. */
  readonly left: string | null;
  readonly right: string | null;
  readonly isSame: boolean;
}

/** Removed lines and the lines added in their place are side by side. */
export function pairLines(lines: readonly DiffLine[]): SidePair[] {
  const pairs: SidePair[] = [];
  let gone: string[] = [];
  let come: string[] = [];
  const flush = (): void => {
    for (let at = 0; at < Math.max(gone.length, come.length); at++)
      pairs.push({ left: gone[at] ?? null, right: come[at] ?? null, isSame: false });
    gone = [];
    come = [];
  };
  for (const { kind, text } of lines) {
    if (kind === "gone") gone.push(text);
    else if (kind === "new") come.push(text);
    else {
      flush();
      pairs.push({ left: text, right: text, isSame: true });
    }
  }
  flush();
  return pairs;
}

const GUTTER = " │ ";

export function renderSideBySide(before: string, after: string, columns: number, paint: Paint): string[] {
  const width = Math.max(4, Math.floor((columns - GUTTER.length) / 2));
  const pairs = pairLines(diffLines(makePrintable(before.trimEnd()), makePrintable(after.trimEnd())));
  return pairs.flatMap(({ left, right, isSame }) => {
    const [old, now] = [wrapSide(left, width), wrapSide(right, width)];
    return Array.from({ length: Math.max(old.length, now.length) }, (_, at) => {
      const [leftText, rightText] = [old[at], now[at]];
      const leftSide = padLine(`${isSame || leftText === undefined ? " " : "-"} ${leftText ?? ""}`, width);
      const rightSide = `${isSame || rightText === undefined ? " " : "+"} ${rightText ?? ""}`;
      return isSame
        ? `${leftSide}${paint.faint(GUTTER)}${rightSide}`
        : `${paint.bad(leftSide)}${paint.faint(GUTTER)}${paint.good(rightSide)}`;
    });
  });
}

/** Two columns of each side are for the marker. */
const wrapSide = (text: string | null, width: number): string[] =>
  text === null ? [] : wrapToWidth(text, Math.max(1, width - 2));
