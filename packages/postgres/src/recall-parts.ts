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
/**
 * A result without a name belongs to the nearest call of its id that stands before it. The server walks back to that one only where the index
 * knows a call of ours with the id.
 */
const PARTS = `
  SELECT p.message_id AS id, p.ordinal, p.tool_name AS name, ${COUNT} FROM message_parts p
  WHERE p.message_id = ANY($1::bigint[]) AND ${OURS("p")}
  UNION ALL
  SELECT p.message_id, p.ordinal, n.tool_name, ${COUNT}
  FROM message_parts p JOIN messages m ON m.message_id = p.message_id
  CROSS JOIN LATERAL (
    SELECT c.tool_name FROM messages k JOIN message_parts c
      ON c.message_id = k.message_id AND c.type = 'tool_call' AND c.tool_call_id = p.tool_call_id
    WHERE k.conversation_id = m.conversation_id AND k.position BETWEEN m.position - $2::bigint AND m.position
    ORDER BY k.position DESC LIMIT 1) n
  WHERE p.message_id = ANY($1::bigint[]) AND p.type = 'tool_result' AND p.tool_name IS NULL AND n.tool_name IS NOT NULL
    AND EXISTS (SELECT 1 FROM message_parts o WHERE o.tool_call_id = p.tool_call_id AND ${OURS("o")})`;

export async function listRecallParts(
  { sql }: StoreContext,
  messageIds: readonly number[],
): Promise<RecallParts[]> {
  if (messageIds.length === 0) return [];
  return gatherRecallParts(await sql.all<FoundPart>(PARTS, [...messageIds], FARTHEST_CALL));
}
