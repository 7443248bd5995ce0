/**
 * Parts of messages that are calls or results of our own tools. The index narrows by the look of the name; the rule in
 * `model/recall-tools.ts` decides. A result without a name belongs to the nearest earlier call of the same id in its conversation.
 */
import { isRecallTool } from "../../model/recall-tools.ts";
import { MAX_INTERVENING_MESSAGES } from "../../model/tool-groups.ts";
import { POSITION_STEP } from "../../model/message.ts";
import type { RecallParts } from "../recall.ts";
import type { Connection } from "./connection.ts";
import type { StoreContext } from "./context.ts";

const ANY =
  "SELECT 1 AS found FROM message_parts INDEXED BY recall_parts WHERE tool_name GLOB '*lcm_*' LIMIT 1";
const NAMED = `
  SELECT p.message_id AS id, p.ordinal, p.tool_name AS name
  FROM json_each(?1) j CROSS JOIN message_parts p ON p.message_id = j.value WHERE p.tool_name GLOB '*lcm_*'`;
const NAMELESS = `
  SELECT p.message_id AS id, p.ordinal, c.tool_name AS name
  FROM json_each(?1) j
  CROSS JOIN message_parts p ON p.message_id = j.value
  CROSS JOIN message_parts c INDEXED BY recall_parts ON c.tool_call_id = p.tool_call_id
  CROSS JOIN messages m ON m.message_id = p.message_id
  CROSS JOIN messages k ON k.message_id = c.message_id
  WHERE p.type = 'tool_result' AND p.tool_name IS NULL AND c.type = 'tool_call' AND c.tool_name GLOB '*lcm_*'
    AND k.conversation_id = m.conversation_id AND k.position BETWEEN m.position - ?2 AND m.position
    AND NOT EXISTS (
      SELECT 1 FROM messages b JOIN message_parts o USING (message_id)
      WHERE b.conversation_id = m.conversation_id AND b.position > k.position AND b.position <= m.position
        AND o.type = 'tool_call' AND o.tool_call_id = p.tool_call_id)`;
const COUNTS = `
  SELECT p.message_id AS id, count(*) AS n FROM json_each(?1) j CROSS JOIN message_parts p ON p.message_id = j.value
  WHERE p.type <> 'payload' GROUP BY p.message_id`;

/** A group holds at most as many messages that answer nothing between a call and its result, and about as many that answer something. */
const FARTHEST = 2 * MAX_INTERVENING_MESSAGES * POSITION_STEP;

export function hasRecallParts(connection: Connection): boolean {
  return connection.get(ANY) !== undefined;
}

export function listRecallParts({ connection }: StoreContext, messageIds: readonly number[]): RecallParts[] {
  return connection.read(() => {
    if (messageIds.length === 0 || !hasRecallParts(connection)) return [];
    const ids = JSON.stringify(messageIds);
    const found = new Map<number, Set<number>>();
    const rows = [
      ...connection.all<{ id: number; ordinal: number; name: string }>(NAMED, ids),
      ...connection.all<{ id: number; ordinal: number; name: string }>(NAMELESS, ids, FARTHEST),
    ];
    for (const { id, ordinal, name } of rows) {
      if (!isRecallTool(name)) continue;
      const ordinals = found.get(id) ?? new Set();
      found.set(id, ordinals.add(ordinal));
    }
    const counts = connection.all<{ id: number; n: number }>(COUNTS, JSON.stringify([...found.keys()]));
    return counts.map(({ id, n }) => {
      const ordinals = found.get(id) ?? new Set();
      return { messageId: id, ordinals, isAll: ordinals.size === n };
    });
  });
}
