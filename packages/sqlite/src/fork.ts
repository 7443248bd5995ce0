/** What a fork shows of its parent. The rules are in `archive/fork.ts`. */
import type { ForkItem } from "@lossless/core/ports";
import type { Row } from "./connection.ts";
import type { StoreContext } from "./context.ts";

const SHOWN_ITEMS = `
  SELECT i.* FROM fork_items i LEFT JOIN messages m ON m.message_id = i.message_id
  WHERE i.conversation_id = ? AND m.forgotten_at IS NULL ORDER BY i.ordinal`;

export function readForkItems({ connection }: StoreContext, conversationId: number): ForkItem[] {
  return connection.read(() => connection.all(SHOWN_ITEMS, conversationId).map(toItem));
}

function toItem(row: Row): ForkItem {
  return {
    kind: row.kind as ForkItem["kind"],
    messageId: row.message_id as number | null,
    summaryId: row.summary_id as string | null,
    firstId: row.first_id as number | null,
    lastId: row.last_id as number | null,
    startPosition: row.start_pos as number,
    endPosition: row.end_pos as number,
    tokens: row.tokens as number,
    messages: row.messages as number,
    depth: row.depth as number,
    earliestAt: row.earliest_at as number | null,
    latestAt: row.latest_at as number | null,
  };
}
