/**
 * Parts of messages that are calls or results of our own tools: what `archive/recall-parts.ts` finds, asked of the one index that knows our
 * calls, in one round trip.
 */
import { FARTHEST_CALL, gatherRecallParts } from "@lossless/core/adapter";
import type { FoundPart } from "@lossless/core/adapter";
import type { RecallParts } from "@lossless/core/ports";
import type { StoreContext } from "./store-context.ts";

/** The condition of the index; a message has few parts beside payloads. */
const OURS = (alias: string): string => `${alias}.tool_name LIKE '%lcm\\_%'`;
const COUNT =
  "(SELECT count(*) FROM message_parts q WHERE q.message_id = p.message_id AND q.type <> 'payload') AS parts";
/** A result without a name belongs to the nearest call of its id that stands before it. */
const PARTS = `
  SELECT p.message_id AS id, p.ordinal, p.tool_name AS name, ${COUNT} FROM message_parts p
  WHERE p.message_id = ANY($1::bigint[]) AND ${OURS("p")}
  UNION ALL
  SELECT p.message_id, p.ordinal, n.tool_name, ${COUNT}
  FROM message_parts p JOIN messages m ON m.message_id = p.message_id
  CROSS JOIN LATERAL (
    SELECT c.tool_name FROM message_parts c JOIN messages k ON k.message_id = c.message_id
    WHERE c.tool_call_id = p.tool_call_id AND c.type = 'tool_call' AND ${OURS("c")} AND k.conversation_id = m.conversation_id
      AND k.position BETWEEN m.position - $2::bigint AND m.position
      AND NOT EXISTS (
        SELECT 1 FROM messages b JOIN message_parts o ON o.message_id = b.message_id
        WHERE b.conversation_id = m.conversation_id AND b.position > k.position AND b.position <= m.position
          AND o.type = 'tool_call' AND o.tool_call_id = p.tool_call_id)) n
  WHERE p.message_id = ANY($1::bigint[]) AND p.type = 'tool_result' AND p.tool_name IS NULL`;

export async function listRecallParts(
  { sql }: StoreContext,
  messageIds: readonly number[],
): Promise<RecallParts[]> {
  if (messageIds.length === 0) return [];
  return gatherRecallParts(await sql.all<FoundPart>(PARTS, [...messageIds], FARTHEST_CALL));
}
