/** The part of the store port that care needs: copies of the whole, and lists of what deserves a look. */
import type { Debt } from "./folding.ts";

/** A summary that a person should know about. */
export interface DoubtfulSummary {
  readonly summaryId: string;
  readonly conversationId: number;
  readonly depth: number;
  readonly tokens: number;
  readonly sourceTokens: number;
  readonly level: string;
  readonly model: string;
  readonly isStale: boolean;
  readonly content: string;
}

export interface CareStore {
  /** Writes a consistent copy of the database to a path that does not exist yet, while others go on writing. */
  backup(path: string, onProgress: (done: number, total: number) => void): Promise<void>;
  listDebts(): Promise<Debt[]>;
  /** Published summaries, in the order of their ids. */
  listPublished(request: { after: string; limit: number }): Promise<DoubtfulSummary[]>;
  /** Paths of all large files the archive names, below the files folder. */
  listFilePaths(): Promise<string[]>;
}
