/**
 * The text index as a port: where clues stand. A clue is a value (`text/clue.ts`); how it is looked up is the adapter's business. What is
 * worth how much, and what is shown, is decided in `recall/`.
 *
 * Invariant: a document is listed for a clue exactly when its text holds it (`holdsClue`), it is in the scope and current.
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
  /** Whether the parts of our own tools in what is listed are wanted along, where the store can tell them. */
  readonly withRecallParts?: boolean;
}

export interface ClueListing {
  /** Newest first. For messages their ids, for summaries their rows in the index. */
  readonly ids: readonly number[];
  /** Documents of the scope that hold it: exact, or an estimate when it is too common to list. */
  readonly frequency: number;
  /**
   * Documents with a lower id were not looked at; null when all were. It divides what one statement saw and says nothing of what arrives
   * later: an id that is committed late on either side of it is in the next search.
   */
  readonly listedFrom: number | null;
}

/** Which parts of a message are calls or results of our own tools. */
export interface RecallParts {
  readonly messageId: number;
  readonly ordinals: ReadonlySet<number>;
  /** It has no other parts. */
  readonly isAll: boolean;
  /** What was handed in, of a message with other parts, where the store has read it along. */
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
  /** Messages of the archive that are not in the index yet and could not be brought in, because this is only a reader. */
  readonly pendingIds: readonly number[];
  /** Whether any message of the archive may hold parts of our own tools. */
  readonly hasRecallParts: boolean;
  /** Those of the listed messages, or of more; absent where the store leaves them to be asked for. */
  readonly recallParts?: readonly RecallParts[];
}

export interface TextIndex {
  findClues(request: ClueRequest): Promise<CluesFound>;
  /** Which of the given documents hold each clue. */
  testClues(request: {
    kind: DocumentKind;
    clues: readonly TextClue[];
    ids: readonly number[];
  }): Promise<number[][]>;
  /** Where messages stand whose spelling raises one of the doubts, or is not known: ranges of ids, in order, which may reach outside the scope. */
  findDoubts(doubts: readonly SpellingDoubt[], scope: RecallScope): Promise<IdRange[]>;
}
