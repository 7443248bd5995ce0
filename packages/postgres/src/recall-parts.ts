/**
 * Parts of messages that are calls or results of our own tools: what `archive/recall-parts.ts` finds, from the one index that has our calls. The
 * text of a message with other parts is included. So one round trip is enough, and other statements can be pipelined with it.
 */
import { decodeBody, FARTHEST_CALL, gatherRecallParts } from "@lossless/core/adapter";
import type { FoundPart, StoredBody } from "@lossless/core/adapter";
import type { RecallParts } from "@lossless/core/ports";
import type { Sql } from "./connection.ts";
import type { SqlValue } from "./sql-values.ts";
import type { StoreContext } from "./store-context.ts";

/** The condition of the index; a message has few parts beside payloads. */
const OURS = (alias: string): string => `${alias}.tool_name LIKE '%lcm\\_%'`;
/** Checked before anything else: archives without any pay nothing. */
export const HAS_RECALL_PARTS = `EXISTS (SELECT 1 FROM message_parts o WHERE ${OURS("o")})`;

/**
 * The statement for the messages that another statement returns as `id`; `tables` are common table expressions that it needs. A result without a
 * name belongs to the nearest call with its id before it. The server walks back to that one only if the index has a call of ours with the id.
 */
export const recallPartsOf = (source: string, tables = ""): string => `
  WITH ${tables} asked AS MATERIALIZED (SELECT a.id FROM (${source}) a WHERE (SELECT ${HAS_RECALL_PARTS})),
  ours AS MATERIALIZED (
    SELECT p.message_id AS id, p.ordinal, p.tool_name AS name FROM asked JOIN message_parts p ON p.message_id = asked.id
    WHERE ${OURS("p")}
    UNION ALL
    SELECT p.message_id, p.ordinal, n.tool_name
    FROM asked JOIN message_parts p ON p.message_id = asked.id JOIN messages m ON m.message_id = p.message_id
    CROSS JOIN LATERAL (
      SELECT c.tool_name FROM messages k JOIN message_parts c
        ON c.message_id = k.message_id AND c.type = 'tool_call' AND c.tool_call_id = p.tool_call_id
      WHERE k.conversation_id = m.conversation_id AND k.position BETWEEN m.position - ${FARTHEST_CALL} AND m.position
      ORDER BY k.position DESC LIMIT 1) n
    WHERE p.type = 'tool_result' AND p.tool_name IS NULL AND n.tool_name IS NOT NULL
      AND EXISTS (SELECT 1 FROM message_parts o WHERE o.tool_call_id = p.tool_call_id AND ${OURS("o")})),
  counted AS (
    SELECT o.id, o.ordinal, o.name, count(*) OVER (PARTITION BY o.id) AS found,
      (SELECT count(*) FROM message_parts q WHERE q.message_id = o.id AND q.type <> 'payload') AS parts
    FROM ours o)
  SELECT c.id, c.ordinal, c.name, c.parts, m.message_id, m.body, m.encoding, m.arrival_bytes
  FROM counted c LEFT JOIN messages m ON m.message_id = c.id AND c.found < c.parts AND m.body IS NOT NULL`;

const PARTS = recallPartsOf("SELECT unnest($1::bigint[]) AS id");

type PartRow = FoundPart &
  ((StoredBody & { readonly arrival_bytes: number }) | { readonly message_id: null });

/** Reads the answer to a statement of {@link recallPartsOf}. */
export async function readRecallParts(
  sql: Sql,
  text: string,
  ...values: readonly SqlValue[]
): Promise<RecallParts[]> {
  const rows = await sql.all<PartRow>(text, ...values);
  const bytesOf = new Map<number, Uint8Array>();
  for (const row of rows) {
    if (row.message_id === null || bytesOf.has(row.id)) continue;
    const body = decodeBody(row, row.arrival_bytes);
    // Without its payloads it is not the arrival.
    if (body.byteLength === row.arrival_bytes) bytesOf.set(row.id, body);
  }
  return gatherRecallParts(rows).map((parts) => {
    const bytes = parts.isAll ? undefined : bytesOf.get(parts.messageId);
    return bytes === undefined ? parts : { ...parts, bytes };
  });
}

/** The recall parts of some messages. */
export const findRecallParts = (sql: Sql, messageIds: readonly number[]): Promise<RecallParts[]> =>
  messageIds.length === 0 ? Promise.resolve([]) : readRecallParts(sql, PARTS, [...messageIds]);

export const listRecallParts = (
  { sql }: StoreContext,
  messageIds: readonly number[],
): Promise<RecallParts[]> => findRecallParts(sql, messageIds);
