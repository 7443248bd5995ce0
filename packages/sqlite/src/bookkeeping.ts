/**
 * Lines of a host's bookkeeping, such as copies of prompts, are no longer in the full-text index. Those that are in it are removed and
 * queued for indexing again: the next writer derives their terms, which are none, or those of another line that looks alike.
 */
import { decodeBody, mayBeBookkeeping } from "@lossless/core/adapter";
import type { Connection } from "./connection.ts";
import { FullTextIndex } from "./full-text-index.ts";

/** Importers hid all of them as `meta` (8). */
const LINES = `
  SELECT message_id, body, encoding FROM messages
  WHERE message_id > ? AND hidden & 8 <> 0 AND forgotten_at IS NULL ORDER BY message_id LIMIT ?`;
const LAST = "SELECT coalesce(max(message_id), 0) AS id FROM messages";
const WAIT = "INSERT INTO index_pending (message_id) SELECT value FROM json_each(?)";
const PAGE = 500;

interface EncodedLine {
  readonly body: Uint8Array;
  readonly encoding: number;
}

export function takeOutBookkeeping(
  connection: Connection,
  onProgress: (done: number, total: number) => void,
): void {
  const index = new FullTextIndex(connection);
  // An unusable index is rebuilt from the messages.
  if (index.readHead().problem !== null) return;
  const last = connection.get<{ id: number }>(LAST)?.id ?? 0;
  for (let after = 0; ;) {
    const rows = connection.all<EncodedLine & { message_id: number }>(LINES, after, PAGE);
    const ids = rows.filter(isTaken).map((row) => row.message_id);
    index.remove(ids);
    if (ids.length > 0) connection.run(WAIT, JSON.stringify(ids));
    const end = rows.at(-1);
    if (!end || rows.length < PAGE) return;
    after = end.message_id;
    onProgress(after, last);
  }
}

function isTaken(row: EncodedLine): boolean {
  try {
    return mayBeBookkeeping(decodeBody(row));
  } catch {
    // `verify` reports damaged bytes.
    return false;
  }
}
