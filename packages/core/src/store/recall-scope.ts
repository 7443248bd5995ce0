/** What a search may see: a value that every recall read takes. */

/** What a search may see. Absent fields do not narrow. */
export interface RecallScope {
  readonly owner?: string;
  readonly conversationIds?: readonly number[];
  /** Besides those conversations: what forks among them share with their parents. */
  readonly inherited?: readonly InheritedPart[];
  /** ms UTC: written at or after, and before. */
  readonly since?: number;
  readonly before?: number;
  readonly role?: string;
}

/** A conversation up to and including a position. */
export interface InheritedPart {
  readonly conversationId: number;
  readonly position: number;
}

/** Messages by id, from the first to the last. */
export type IdRange = readonly [first: number, last: number];
