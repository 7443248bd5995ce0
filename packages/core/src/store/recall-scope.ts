/** What a search may see: a value that every read of recall takes. */

/** What a search may see. Absent fields do not narrow. */
export interface RecallScope {
  readonly owner?: string;
  readonly conversationIds?: readonly number[];
  /** Beside those conversations: what they have in common with the ones they left as forks. */
  readonly inherited?: readonly InheritedPart[];
  /** ms UTC: written at or after, and before. */
  readonly since?: number;
  readonly before?: number;
  readonly role?: string;
}

/** A conversation up to a position, which is in. */
export interface InheritedPart {
  readonly conversationId: number;
  readonly position: number;
}

/** Messages by id, from the first to the last. */
export type IdRange = readonly [first: number, last: number];
