/** The line at the bottom: the keys of a screen, as many as fit, and the global ones. Drawing and mouse use the same layout. Pure. */
import { displayWidth } from "@lossless/core/doors";
import { readHelpKey, type Key, type KeyHelp } from "./keys.ts";
import { renderSpans, span, type Paint, type Span } from "./paint.ts";

const GAP = 3;
/** Below this the last words are shorter. */
const WIDE_FROM = 60;
const QUIT: KeyHelp = { keys: "q", does: "quit" };

interface FootKey extends KeyHelp {
  readonly column: number;
}

/** Keys that do not fit are left to the list of all keys. */
function layOut(keys: readonly KeyHelp[], columns: number): FootKey[] {
  const ends = [{ keys: "?", does: columns < WIDE_FROM ? "keys" : "all keys" }, QUIT];
  const endColumns = ends.reduce((sum, key) => sum + widthOf(key) + GAP - 1, -1);
  const placed: FootKey[] = [];
  let column = 1;
  for (const key of keys) {
    if (column + widthOf(key) + GAP > columns - endColumns) break;
    placed.push({ ...key, column });
    column += widthOf(key) + GAP;
  }
  let end = Math.max(0, columns - endColumns);
  for (const key of ends) {
    placed.push({ ...key, column: end });
    end += widthOf(key) + GAP - 1;
  }
  return placed;
}

const widthOf = ({ keys, does }: KeyHelp): number => displayWidth(`${keys} ${does}`);

export function renderFoot(keys: readonly KeyHelp[], columns: number, paint: Paint): string {
  const spans: Span[] = [];
  let at = 0;
  for (const key of layOut(keys, columns)) {
    spans.push(span(" ".repeat(Math.max(0, key.column - at))));
    spans.push(span(key.keys, paint.name), span(` ${key.does}`, paint.faint));
    at = key.column + widthOf(key);
  }
  return renderSpans(spans, columns);
}

/** The key at a column: one of several by its own character, the first one by the words. */
export function findFootKey(keys: readonly KeyHelp[], columns: number, column: number): Key | null {
  const found = layOut(keys, columns).find(
    (key) => column >= key.column && column < key.column + widthOf(key),
  );
  if (found === undefined) return null;
  const signs = found.keys.split(" ");
  let at = found.column;
  for (const sign of signs) {
    at += displayWidth(sign);
    if (column < at) return readHelpKey(sign);
    at += 1;
  }
  return readHelpKey(signs[0] ?? "");
}
