/** The position in a list: the chosen row, and the first visible one. Pure; every list of the terminal UI uses it. */
import type { Move } from "./keys.ts";
import type { ListArea } from "./mouse.ts";

export interface ListCursor {
  readonly selected: number;
  readonly top: number;
}

export const LIST_START: ListCursor = { selected: 0, top: 0 };

/** Moves the cursor, and keeps it inside the list and the screen. */
export function moveInList(cursor: ListCursor, move: Move, count: number, rows: number): ListCursor {
  const wanted = move.kind === "first" ? 0 : move.kind === "last" ? count - 1 : cursor.selected + move.rows;
  return keepInList({ ...cursor, selected: wanted }, count, rows);
}

/** Keeps the chosen row in the list and on the screen, and the screen as full as possible. */
export function keepInList({ selected, top }: ListCursor, count: number, rows: number): ListCursor {
  const chosen = Math.max(0, Math.min(selected, count - 1));
  const height = Math.max(1, rows);
  const least = Math.max(0, chosen - height + 1);
  const most = Math.min(chosen, Math.max(0, count - height));
  return { selected: chosen, top: Math.max(least, Math.min(top, most)) };
}

/** Where the rows are in a pane with this many lines above them, and the position among them. */
export function placeList(
  { selected, top }: ListCursor,
  count: number,
  pane: { readonly columns: number; readonly rows: number },
  firstRow: number,
): ListArea {
  const shown = Math.max(0, Math.min(pane.rows - firstRow, count - top));
  const position = count === 0 ? null : `${selected + 1}/${count}`;
  return { columns: pane.columns, rows: pane.rows, firstRow, shown, chosen: selected - top, position };
}
