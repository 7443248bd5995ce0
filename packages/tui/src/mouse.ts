/**
 * Parses mouse reports of the terminal and translates them to keys, so that screens do not handle the mouse. Only presses and the wheel are
 * requested; with Shift held the terminal keeps the mouse for itself, to select text. Pure.
 */
import { moveKey, type Key } from "./keys.ts";

/** Presses and the wheel, with coordinates of any size. */
export const MOUSE_ON = "\u001B[?1000h\u001B[?1006h";
export const MOUSE_OFF = "\u001B[?1006l\u001B[?1000l";

export interface MousePoint {
  readonly kind: "press" | "wheelUp" | "wheelDown";
  /** From 0. */
  readonly column: number;
  readonly row: number;
}

/** Where the rows of a list are on its screen. */
export interface ListArea {
  /** Of the pane, with the lines above its rows. */
  readonly columns: number;
  readonly rows: number;
  readonly firstRow: number;
  /** Visible rows, and which of them is chosen. */
  readonly shown: number;
  readonly chosen: number;
  /** The chosen row and the total, such as 12/162; null in an empty list. */
  readonly position?: string | null;
  /** The key for a click on the chosen row, if it is not Enter. */
  readonly openKey?: string;
}

const REPORT = new RegExp(String.raw`^${"\u001B"}\[<(\d+);(\d+);(\d+)([Mm])$`);
const MODIFIERS = 4 + 8 + 16;
const KINDS: Readonly<Record<number, MousePoint["kind"]>> = { 0: "press", 64: "wheelUp", 65: "wheelDown" };

export const isMouse = (data: string): boolean => REPORT.test(data);

/** Null for other reports: other buttons, a release. */
export function readMouse(data: string): MousePoint | null {
  const [, button, column, row, end] = REPORT.exec(data) ?? [];
  const kind = KINDS[Number(button) & ~MODIFIERS];
  if (kind === undefined || end !== "M") return null;
  return { kind, column: Number(column) - 1, row: Number(row) - 1 };
}

/** The key for a click at a place; rows are those of the screen. Null: nothing is there. */
export function pointAt({ kind, column, row }: MousePoint, area: ListArea | null): Key | null {
  const isInList = area !== null && column < area.columns && row < area.rows;
  if (kind !== "press") {
    const isPane = area !== null && !isInList;
    const name = kind === "wheelUp" ? "Up" : "Down";
    return { name: `${isPane ? "pane" : "wheel"}${name}`, text: null };
  }
  if (!isInList) return null;
  const pointed = row - area.firstRow;
  if (pointed < 0 || pointed >= area.shown) return null;
  // A click on the chosen row opens it.
  return pointed === area.chosen
    ? { name: area.openKey ?? "enter", text: null }
    : moveKey(pointed - area.chosen);
}
