/** The equivalent of migration 22 of an archive in a file: removes books of a host's requests from the index, and makes them pending again. */
import { decodeBody, mayBeBookkeeping } from "@lossless/core/adapter";
import type { Row } from "@lossless/core/ports";
import type { WriteSql } from "../connection.ts";
import { statement } from "../connection.ts";
import { FullTextIndex, purgeAll } from "../full-text-index.ts";

/** Importers hid all of them as not messages (8). */
const LINES = `
  SELECT message_id, body, encoding FROM messages
  WHERE message_id > $1 AND hidden & 8 <> 0 AND forgotten_at IS NULL ORDER BY message_id LIMIT $2`;
const WAIT = `
  INSERT INTO index_pending (owner, message_id)
  SELECT c.owner, m.message_id FROM messages m JOIN conversations c USING (conversation_id) WHERE m.message_id = ANY($1::bigint[])`;
const PAGE = 500;
type HiddenLine = Pick<Row<"messages">, "message_id" | "body" | "encoding">;

export async function takeOutBookkeeping(sql: WriteSql): Promise<void> {
  const index = new FullTextIndex();
  const taken: number[] = [];
  for (let after = 0; ;) {
    const rows = await sql.all<HiddenLine>(LINES, after, PAGE);
    const ids = rows.filter(isTaken).map((row) => row.message_id);
    sql.post(...index.render(ids.map((messageId) => ({ kind: "remove-message", messageId }))));
    taken.push(...ids);
    const end = rows.at(-1);
    if (!end || rows.length < PAGE) break;
    after = end.message_id;
  }
  if (taken.length === 0) return;
  await purgeAll(sql);
  sql.post(statement(WAIT, taken));
}

function isTaken(line: HiddenLine): boolean {
  try {
    return mayBeBookkeeping(decodeBody(line));
  } catch {
    // The proof reports a damaged line; the upgrade continues.
    return false;
  }
}
