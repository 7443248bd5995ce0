/**
 * Parts of messages that are calls or results of our own tools: what `archive/recall-parts.ts` finds, from the one index of our calls. It
 * narrows by the form of the name; the rule in `model/recall-tools.ts` decides.
 */
import { FARTHEST_CALL, gatherRecallParts } from "@lossless/core/adapter";
import type { FoundPart } from "@lossless/core/adapter";
import type { RecallParts } from "@lossless/core/ports";
import type { StoreContext } from "./store-context.ts";

/** Whether there are any, for any statement: evaluated before the loops, so that archives without one pay nothing. */
export const HAS_RECALL_PARTS = `
  EXISTS (SELECT 1 FROM message_parts INDEXED BY recall_parts WHERE tool_name GLOB '*lcm_*')`;
const COUNT =
  "(SELECT count(*) FROM message_parts q WHERE q.message_id = p.message_id AND q.type <> 'payload') AS parts";
const PARTS = `
  SELECT p.message_id AS id, p.ordinal, p.tool_name AS name, ${COUNT}
  FROM json_each(?1) j CROSS JOIN message_parts p ON p.message_id = j.value
  WHERE ${HAS_RECALL_PARTS} AND p.tool_name GLOB '*lcm_*'
  UNION ALL SELECT p.message_id, p.ordinal, c.tool_name, ${COUNT}
  FROM json_each(?1) j
  CROSS JOIN message_parts p ON p.message_id = j.value
  CROSS JOIN message_parts c INDEXED BY recall_parts ON c.tool_call_id = p.tool_call_id
  CROSS JOIN messages m ON m.message_id = p.message_id
  CROSS JOIN messages k ON k.message_id = c.message_id
  WHERE ${HAS_RECALL_PARTS} AND p.type = 'tool_result' AND p.tool_name IS NULL AND c.type = 'tool_call' AND c.tool_name GLOB '*lcm_*'
    AND k.conversation_id = m.conversation_id AND k.position BETWEEN m.position - ?2 AND m.position
    AND NOT EXISTS (
      SELECT 1 FROM messages b JOIN message_parts o USING (message_id)
      WHERE b.conversation_id = m.conversation_id AND b.position > k.position AND b.position <= m.position
        AND o.type = 'tool_call' AND o.tool_call_id = p.tool_call_id)`;

export function listRecallParts({ connection }: StoreContext, messageIds: readonly number[]): RecallParts[] {
  if (messageIds.length === 0) return [];
  return gatherRecallParts(connection.all<FoundPart>(PARTS, JSON.stringify(messageIds), FARTHEST_CALL));
}
