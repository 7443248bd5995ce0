/**
 * The part of the store port for search by meaning: spaces, the vectors in them, and messages that have none yet. A space has the vectors
 * of one model; while another model's space is being filled, the old one stays.
 *
 * Invariant: only the current version of a shown message has a vector. Hiding, revising or forgetting a message removes its vectors in the
 * same transaction.
 */
import type { Neighbour } from "../model/vector.ts";
import type { SpendRecord } from "./folding.ts";
import type { RecallScope } from "./recall.ts";

export interface VectorSpace {
  readonly spaceId: number;
  readonly model: string;
  /** 0 until the first vectors are stored. */
  readonly dimensions: number;
  readonly createdAt: number;
  /** When it was first complete; null if it never was. */
  readonly filledAt: number | null;
}

export interface VectorCounts {
  /** Messages that should have a vector. */
  readonly messages: number;
  /** Messages of each space that have one, or were found to have no text. */
  readonly spaces: readonly { readonly spaceId: number; readonly vectors: number }[];
}

export interface StoreVectors {
  readonly spaceId: number;
  readonly holder: string;
  readonly now: number;
  readonly leaseMs: number;
  /** Of length one; null if a message has no text. */
  readonly vectors: readonly { readonly messageId: number; readonly vector: Float32Array | null }[];
  /** Messages that were skipped for now. */
  readonly passed?: readonly number[] | undefined;
  /** Messages that need none; one that was shown meanwhile stays pending. */
  readonly unwanted?: readonly number[] | undefined;
  /** What the model call that made them cost: recorded in the same transaction, whatever becomes of the vectors. */
  readonly spent?: SpendRecord | null | undefined;
}

export type StoreVectorsResult =
  | { readonly kind: "stored"; readonly stored: number }
  /** Another process now fills the space, or it is gone. */
  | { readonly kind: "lost" }
  | { readonly kind: "dimensions"; readonly expected: number; readonly given: number };

export interface VectorStore {
  listVectorSpaces(): Promise<VectorSpace[]>;
  countVectors(): Promise<VectorCounts>;
  /** The space of a model, created if there is none, for one filler at a time; null while another one holds it. */
  claimVectorSpace(request: {
    model: string;
    holder: string;
    now: number;
    leaseMs: number;
  }): Promise<VectorSpace | null>;
  /**
   * Messages that arrived, or were shown again, since the space was made, and were not processed since; not ordered by time. `isWanted`: it
   * should have a vector.
   */
  listPendingVectors(request: {
    spaceId: number;
    limit: number;
  }): Promise<{ messageId: number; isWanted: boolean }[]>;
  /** A page of all messages that should have a vector in the space and have none, ordered by id. */
  listUnembedded(request: { spaceId: number; after: number; limit: number }): Promise<number[]>;
  /**
   * Stores vectors and renews the claim; these messages are no longer pending. A message that was hidden, revised or forgotten meanwhile is
   * skipped.
   */
  storeVectors(request: StoreVectors): Promise<StoreVectorsResult>;
  /** Ends a claim; `isFilled` when nothing was left to do. */
  releaseVectorSpace(request: {
    spaceId: number;
    holder: string;
    now: number;
    isFilled: boolean;
  }): Promise<void>;
  /** Removes a space, this many vectors at a time; false while some are left. */
  dropVectorSpace(spaceId: number, limit: number): Promise<boolean>;
  /**
   * The nearest in one stretch of a space, with all that are as near as the last of them, and where the next stretch begins; null after the
   * last. A store may compare only the likely nearest, whose scores are exact; with `isExact` it compares everything.
   */
  scanVectors(request: {
    spaceId: number;
    vector: Float32Array;
    scope: RecallScope;
    limit: number;
    after: string | null;
    isExact?: boolean | undefined;
  }): Promise<{ nearest: Neighbour[]; next: string | null }>;
}
