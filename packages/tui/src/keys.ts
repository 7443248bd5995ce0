/**
 * Parses terminal input into named keys: `j`, `R`, `up`, `pageDown`, `enter`, `ctrl+c`. Knows the old encodings and the newer ones that some
 * terminals switch to; no other code reads escape sequences.
 */
import { decodeKittyPrintable, isKeyRelease, parseKey } from "@earendil-works/pi-tui";

export interface Key {
  readonly name: string;
  /** The text that it types; null for a key that types nothing. */
  readonly text: string | null;
}

/** Terminals put these around pasted text. */
const PASTE_BEGIN = "\u001B[200~";
const PASTE_END = "\u001B[201~";

/** Null for input that is not a key: a release, a response of the terminal. */
export function readKey(data: string): Key | null {
  if (data.startsWith(PASTE_BEGIN) && data.endsWith(PASTE_END)) {
    const pasted = data.slice(PASTE_BEGIN.length, -PASTE_END.length);
    return { name: "paste", text: pasted.replaceAll(/\p{Cc}+/gu, " ") };
  }
  if (isKeyRelease(data)) return null;
  const name = OTHER_NAMES[data] ?? parseKey(data);
  // Some terminals report the key pressed with Shift, and not the character it types.
  const letter = name === undefined ? undefined : /^shift\+([a-z])$/.exec(name)?.[1]?.toUpperCase();
  const printable = letter ?? decodeKittyPrintable(data) ?? (isPrintable(data) ? data : null);
  if (printable !== null) return { name: printable === " " ? "space" : printable, text: printable };
  return name === undefined ? null : { name, text: null };
}

/** Encodings of old terminals, and of tmux, that the library does not know. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  "\u001B[1~": "home",
  "\u001B[7~": "home",
  "\u001B[4~": "end",
  "\u001B[8~": "end",
};

const isPrintable = (data: string): boolean => data !== "" && !/\p{Cc}/u.test(data);

/** A key in the notation of the help, and what it does. */
export interface KeyHelp {
  readonly keys: string;
  readonly does: string;
}

const HELP_NAMES: Readonly<Record<string, string>> = {
  Enter: "enter",
  Esc: "escape",
  Tab: "tab",
  PgUp: "pageUp",
  PgDn: "pageDown",
  "↑": "up",
  "↓": "down",
  "←": "left",
  "→": "right",
};

/** The key for a notation of the help. */
export const readHelpKey = (sign: string): Key => ({
  name: HELP_NAMES[sign] ?? sign,
  text: sign in HELP_NAMES ? null : sign,
});

/** A move by a number of rows, as a key. */
export const moveKey = (rows: number): Key => ({ name: `rows:${rows}`, text: null });
const MOVE_NAME = /^rows:(-?\d+)$/;
/** Rows per step of the wheel. */
export const WHEEL_ROWS = 3;

/** Keys that move in every list and text. */
export const MOVE_KEYS: readonly KeyHelp[] = [
  { keys: "↑ ↓ k j", does: "up, down" },
  { keys: "PgUp PgDn", does: "a page" },
  { keys: "g G", does: "first, last" },
];

/** Global keys. */
export const COMMON_KEYS: readonly KeyHelp[] = [
  { keys: "Enter → l", does: "open" },
  { keys: "Esc ← h", does: "back" },
  { keys: "/", does: "search" },
  { keys: "?", does: "all keys" },
  { keys: "q", does: "quit" },
];

const UP = new Set(["up", "k"]);
const DOWN = new Set(["down", "j"]);
const FIRST = new Set(["g", "home"]);
const LAST = new Set(["G", "end"]);
const PAGE_UP = new Set(["pageUp", "ctrl+b", "ctrl+u"]);
const PAGE_DOWN = new Set(["pageDown", "ctrl+f", "ctrl+d"]);

export type Move =
  | { readonly kind: "by"; readonly rows: number }
  | { readonly kind: "first" }
  | { readonly kind: "last" };

/** The move of a key in a list with this many visible rows; null for other keys. */
export function readMove(name: string, pageRows: number): Move | null {
  if (UP.has(name)) return { kind: "by", rows: -1 };
  if (DOWN.has(name)) return { kind: "by", rows: 1 };
  if (PAGE_UP.has(name)) return { kind: "by", rows: -Math.max(1, pageRows - 1) };
  if (PAGE_DOWN.has(name)) return { kind: "by", rows: Math.max(1, pageRows - 1) };
  if (name === "wheelUp") return { kind: "by", rows: -WHEEL_ROWS };
  if (name === "wheelDown") return { kind: "by", rows: WHEEL_ROWS };
  const rows = MOVE_NAME.exec(name)?.[1];
  if (rows !== undefined) return { kind: "by", rows: Number(rows) };
  if (FIRST.has(name)) return { kind: "first" };
  return LAST.has(name) ? { kind: "last" } : null;
}

export const isOpen = (name: string): boolean => name === "enter" || name === "right" || name === "l";
export const isBack = (name: string): boolean =>
  name === "escape" || name === "left" || name === "h" || name === "backspace";
