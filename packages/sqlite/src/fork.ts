/** What a fork shows of its parent. The rules are in `archive/fork.ts`. */
import type { ForkItem, Row } from "@lossless/core/ports";
import type { StoreContext } from "./store-context.ts";

const SHOWN_ITEMS = `
  SELECT i.* FROM fork_items i LEFT JOIN messages m ON m.message_id = i.message_id
  WHERE i.conversation_id = ? AND m.forgotten_at IS NULL ORDER BY i.ordinal`;

export function readForkItems({ connection }: StoreContext, conversationId: number): ForkItem[] {
  return connection.read(() => connection.all<Row<"fork_items">>(SHOWN_ITEMS, conversationId).map(toItem));
}

function toItem(row: Row<"fork_items">): ForkItem {
  return {
    kind: row.kind,
    messageId: row.message_id,
    summaryId: row.summary_id,
    firstId: row.first_id,
    lastId: row.last_id,
    startPosition: row.start_pos,
    endPosition: row.end_pos,
    tokens: row.tokens,
    messages: row.messages,
    depth: row.depth,
    earliestAt: row.earliest_at,
    latestAt: row.latest_at,
  };
}
