/**
 * The cover of a conversation: the ordered items that together represent every message exactly once. Choosing a context and planning a fold
 * read only items, never bodies.
 */
export interface CoverItem {
  /** Ordinal in the page that was read, oldest first. */
  readonly startPosition: number;
  readonly endPosition: number;
  readonly seq: number;
  readonly messageId: number | null;
  readonly summaryId: string | null;
  /** Tokens of the item as it would be sent, uncalibrated. */
  readonly tokens: number;
  /** Shown messages the item represents; 1 for a message. */
  readonly messages: number;
  /** −1 for a message, 0 for a leaf summary, and so on. */
  readonly depth: number;
  /** Bit mask of `HIDDEN`. */
  readonly hidden: number;
  readonly role: string | null;
  readonly createdAt: number;
  /** Tool calls this message makes, and tool calls it answers: they keep a tool group together. */
  readonly toolCalls: readonly string[];
  readonly toolResults: readonly string[];
}

/** Summaries of a cover that are read beyond what a budget holds: enough for any useful budget. */
export const MAX_SUMMARIES_BEFORE = 400;
