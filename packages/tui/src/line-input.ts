/** A line of typed text and its cursor. Pure: each key gives the next state. */
import type { Key } from "./keys.ts";

export interface LineInput {
  readonly text: string;
  /** Characters before the cursor, in UTF-16 units. */
  readonly cursor: number;
}

export const startInput = (text = ""): LineInput => ({ text, cursor: text.length });

/** The state after a key; null when the key has no effect on a line. */
export function typeKey({ text, cursor }: LineInput, key: Key): LineInput | null {
  const [before, behind] = [text.slice(0, cursor), text.slice(cursor)];
  const keep = (left: string, right: string): LineInput => ({ text: left + right, cursor: left.length });
  if (key.text !== null) return keep(before + key.text, behind);
  switch (key.name) {
    case "backspace":
      return keep(dropLast(before), behind);
    case "delete":
      return keep(before, behind.slice(firstLength(behind)));
    case "left":
      return { text, cursor: dropLast(before).length };
    case "right":
      return { text, cursor: cursor + firstLength(behind) };
    case "home":
    case "ctrl+a":
      return { text, cursor: 0 };
    case "end":
    case "ctrl+e":
      return { text, cursor: text.length };
    case "ctrl+u":
      return keep("", behind);
    case "ctrl+k":
      return keep(before, "");
    case "ctrl+w":
      return keep(before.replace(/\S*\s*$/, ""), behind);
    default:
      return null;
  }
}

const segmenter = new Intl.Segmenter("en", { granularity: "grapheme" });

function dropLast(text: string): string {
  // The last few units contain the last character, however it is composed.
  const tail = text.slice(-32);
  const last = [...segmenter.segment(tail)].at(-1)?.segment ?? "";
  return text.slice(0, text.length - last.length);
}

const firstLength = (text: string): number =>
  segmenter.segment(text.slice(0, 32))[Symbol.iterator]().next().value?.segment.length ?? 0;
