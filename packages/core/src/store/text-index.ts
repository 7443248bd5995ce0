/**
 * The text index as a port: which documents match clues. A clue is a value (`text/clue.ts`); the adapter decides how to look it up.
 * `recall/` decides scores and what is shown.
 *
 * Invariant: a document is listed for a clue exactly when its text matches it (`holdsClue`), it is in the scope and current.
 */
import type { SpellingDoubt, TextClue } from "../text/index.ts";
import type { IdRange, RecallScope } from "./recall-scope.ts";

export type DocumentKind = "message" | "summary";

export interface ClueRequest {
  readonly kind: DocumentKind;
  readonly clues: readonly TextClue[];
  readonly scope: RecallScope;
  /** At most this many documents are listed for each clue, the newest. */
  readonly limit: number;
  /** Whether to return the parts of our own tools in listed documents as well, if the store can. */
  readonly withRecallParts?: boolean;
}

export interface ClueListing {
  /** Newest first. For messages their ids, for summaries their rows in the index. */
  readonly ids: readonly number[];
  /** Documents of the scope that match: exact, or an estimate when it is too common to list. */
  readonly frequency: number;
  /**
   * Documents with a lower id were not checked; null when all were. It divides what one statement saw and says nothing about later
   * arrivals: an id that is committed late on either side of it is in the next search.
   */
  readonly listedFrom: number | null;
}

/** Which parts of a message are calls or results of our own tools. */
export interface RecallParts {
  readonly messageId: number;
  readonly ordinals: ReadonlySet<number>;
  /** It has no other parts. */
  readonly isAll: boolean;
  /** The arrival bytes of a message with other parts, if the store has read them as well. */
  readonly bytes?: Uint8Array;
}

export interface CluesFound {
  /** Documents in the scope. */
  readonly total: number;
  /** Times of the oldest and newest message of the scope. */
  readonly firstAt: number | null;
  readonly lastAt: number | null;
  /** In the order of the clues. */
  readonly listings: ClueListing[];
  /** Messages of the archive that are not in the index yet and could not be added, because this store is read-only. */
  readonly pendingIds: readonly number[];
  /** Whether any message of the archive may have parts of our own tools. */
  readonly hasRecallParts: boolean;
  /** Those of the listed messages, or of more; absent if the store must be asked separately. */
  readonly recallParts?: readonly RecallParts[];
}

export interface DoubtsFound {
  /** The spelled words of messages that raise each doubt, in the order of the doubts. */
  readonly words: readonly (readonly string[])[];
  /** Messages with other words that raise a doubt, or whose spelling is unknown, in order. They may be outside the scope and the range. */
  readonly unresolved: readonly IdRange[];
  /** Whether this covers all messages of the scope. */
  readonly isWhole: boolean;
}

export interface TextIndex {
  findClues(request: ClueRequest): Promise<CluesFound>;
  /** Which of the given documents match each clue. */
  testClues(request: {
    kind: DocumentKind;
    clues: readonly TextClue[];
    ids: readonly number[];
  }): Promise<number[][]>;
  /** Which spelled words raise the doubts. Covers at least the messages of the scope with ids in the range. */
  findDoubts(
    doubts: readonly SpellingDoubt[],
    scope: RecallScope,
    within: IdRange | null,
  ): Promise<DoubtsFound>;
}
