/**
 * Boundaries of a conversation (`/new`): everything before an active one is hidden, except summaries deep enough to be retained. This is
 * computed from the boundary and never stored on items, so that undoing a boundary is one change. No summary spans one.
 */
import type { CoverItem } from "./cover.ts";

export interface Boundary {
  /** The first position of the new segment. */
  readonly position: number;
  /** Summaries of at least this depth stay visible before the boundary; −1 keeps everything visible. */
  readonly retainDepth: number;
}

export function isHiddenByBoundary(
  item: Pick<CoverItem, "endPosition" | "depth">,
  boundaries: readonly Boundary[],
): boolean {
  return boundaries.some(
    ({ position, retainDepth }) =>
      retainDepth >= 0 && item.endPosition < position && item.depth < retainDepth,
  );
}

/** Where the part of a cover begins that no boundary hides: earlier items are found through its deep summaries, not by walking. */
export const findFloor = (boundaries: readonly Boundary[]): number =>
  boundaries.findLast(({ retainDepth }) => retainDepth >= 0)?.position ?? 0;

/** True when there is a boundary between two neighbours of the cover. */
export function isDivided(
  older: Pick<CoverItem, "endPosition">,
  newer: Pick<CoverItem, "startPosition">,
  boundaries: readonly Boundary[],
): boolean {
  return boundaries.some(({ position }) => older.endPosition < position && position <= newer.startPosition);
}
