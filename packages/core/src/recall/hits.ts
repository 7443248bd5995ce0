/** The hits of a search: a message, a summary, or a line of a file. */
import { formatMessageId } from "../model/ids.ts";
import type { FoundSummary, MessageText } from "../store/recall.ts";
import type { SnippetRange } from "../text/index.ts";
import type { FoundBy } from "./vector-search.ts";

interface HitBase {
  readonly id: string;
  readonly conversationId: number;
  /** When it was said, or made. */
  readonly createdAt: number;
  readonly snippet: string;
  /** Where the snippet matches, in UTF-16 units. */
  readonly ranges: readonly SnippetRange[];
  /** Higher is better; comparable within one result. */
  readonly score: number;
  /** What found it: its words, its vector, or both; or the expression. */
  readonly foundBy: readonly FoundBy[];
}

export interface MessageHit extends HitBase {
  readonly type: "message";
  readonly messageId: number;
  readonly eventId: string;
  readonly seq: number;
  readonly role: string;
}

export interface SummaryHit extends HitBase {
  readonly type: "summary";
  readonly summaryId: string;
  readonly kind: "leaf" | "condensed";
  readonly depth: number;
  /** Times of the first and the last message it represents. */
  readonly earliestAt: number;
  readonly latestAt: number;
}

export interface FileHit extends HitBase {
  readonly type: "file";
  readonly fileId: string;
  readonly fileName: string | null;
  /** From 1. */
  readonly line: number;
  readonly byteOffset: number;
}

export type GrepHit = MessageHit | SummaryHit | FileHit;

/** The score of a hit, and what found it. */
type Found = Pick<HitBase, "score" | "foundBy">;

interface Cut {
  readonly text: string;
  readonly ranges: readonly SnippetRange[];
}

export function toMessageHit(message: MessageText, found: Found, snippet: Cut): MessageHit {
  const { messageId, eventId, conversationId, seq, role, createdAt } = message;
  const id = formatMessageId(messageId);
  return {
    id,
    type: "message",
    messageId,
    eventId,
    conversationId,
    seq,
    role,
    createdAt,
    snippet: snippet.text,
    ranges: snippet.ranges,
    ...found,
  };
}

export function toSummaryHit(summary: FoundSummary, found: Found, snippet: Cut): SummaryHit {
  const { summaryId, conversationId, kind, depth, createdAt, earliestAt, latestAt } = summary;
  return {
    id: summaryId,
    type: "summary",
    summaryId,
    conversationId,
    kind,
    depth,
    createdAt,
    earliestAt,
    latestAt,
    snippet: snippet.text,
    ranges: snippet.ranges,
    ...found,
  };
}
