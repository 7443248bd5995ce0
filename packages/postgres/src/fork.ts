/** What a fork shows of its parent. The rules are in `archive/fork.ts`. */
import { toForkItem } from "@lossless/core/adapter";
import type { ForkItem, Row } from "@lossless/core/ports";
import type { StoreContext } from "./store-context.ts";

const SHOWN_ITEMS = `
  SELECT i.* FROM fork_items i LEFT JOIN messages m ON m.message_id = i.message_id
  WHERE i.conversation_id = $1 AND m.forgotten_at IS NULL ORDER BY i.ordinal`;

export async function readForkItems({ sql }: StoreContext, conversationId: number): Promise<ForkItem[]> {
  return (await sql.all<Row<"fork_items">>(SHOWN_ITEMS, conversationId)).map(toForkItem);
}
