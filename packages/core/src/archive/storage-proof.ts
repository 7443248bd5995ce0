/** What only an adapter can see: the form of its storage, its text index and its vectors. The proof asks for these checks when their turn comes. */
import type { ReadTerms } from "../text/index.ts";
import type { Problems } from "./verify-problems.ts";

/** What the text index must hold. An adapter compares it with what it does hold, at once or at the end. */
export interface IndexProof {
  expect(messageId: number, conversationId: number, readTerms: ReadTerms): void;
  finish(): void;
}

/** What an adapter checks of its own storage, and adds to the problems. One that cannot answer at once asks before the plan begins. */
export interface StorageProof {
  checkDatabase(problems: Problems): void;
  openIndex(problems: Problems): IndexProof;
  checkVectors(problems: Problems): void;
  /** Whether the archive is only busy: then this is not damage, and the proof starts again. */
  isTransient(error: unknown): boolean;
}
