/**
 * What only an adapter can check: its storage format, its text index and its vectors. The proof calls these checks when it gets to them.
 */
import type { ReadTerms } from "../text/index.ts";
import type { Problems } from "./verify-problems.ts";

/** What the text index must contain. An adapter compares it with the actual content, at once or at the end. */
export interface IndexProof {
  expect(messageId: number, conversationId: number, readTerms: ReadTerms): void;
  finish(): void;
}

/** An adapter's checks of its own storage, which add to the problems. An adapter without direct answers reads before the plan begins. */
export interface StorageProof {
  checkDatabase(problems: Problems): void;
  openIndex(problems: Problems): IndexProof;
  checkVectors(problems: Problems): void;
  /** Whether the archive is only busy: then this is not damage, and the proof starts again. */
  isTransient(error: unknown): boolean;
}
