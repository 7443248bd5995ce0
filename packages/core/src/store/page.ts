/** Keyset paging: `after` is the cursor of the last row seen; null starts at the beginning. */
import { EngineError } from "../model/errors.ts";

export interface Page<T> {
  readonly items: T[];
  readonly next: string | null;
}

/** A page of rows, made from one more row than the limit. */
export function makePage<T>(rows: readonly T[], limit: number, cursorOf: (row: T) => string): Page<T> {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  return { items, next: rows.length > limit && last !== undefined ? cursorOf(last) : null };
}

/**
 * Where a page of conversations begins, and the cursor of the next: after a number if they are listed by it, else after a count of rows.
 * Other sort keys change while people look, so a key is no better to continue from than a count.
 */
export function placePage({
  after,
  limit,
  order = "id",
}: {
  readonly after: string | null;
  readonly limit: number;
  readonly order?: string | undefined;
}): {
  readonly before: number;
  readonly offset: number;
  readonly cursorOf: (row: { readonly conversationId: number }) => string;
} {
  const [place] = after === null ? [null] : parseCursor(after, 1);
  if (order === "id")
    return {
      before: place ?? Number.MAX_SAFE_INTEGER,
      offset: 0,
      cursorOf: ({ conversationId }) => `${conversationId}`,
    };
  const offset = Math.max(0, place ?? 0);
  return { before: Number.MAX_SAFE_INTEGER, offset, cursorOf: () => `${offset + limit}` };
}

/** The numbers of a cursor. */
export function parseCursor(cursor: string, length: number): number[] {
  const pieces = cursor.split(".");
  const numbers = pieces.map(Number);
  // Positions and times may be below 0; only digits count as a number here.
  const isNumber = (piece: string, index: number): boolean =>
    /^-?\d+$/.test(piece) && Number.isSafeInteger(numbers[index]);
  if (pieces.length !== length || !pieces.every(isNumber)) {
    throw new EngineError("usage", `cannot continue after "${cursor}": it is not a cursor of this list`, {
      hint: "use the value of pagination.next from the page before",
    });
  }
  return numbers;
}
