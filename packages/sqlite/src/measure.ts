/**
 * Counts: what a conversation contains and what of it the context leaves out, and what the database's pages are used for. Everything that
 * shows a number of messages uses these, so that all mean the same.
 */
import { shareStorage, toCounts } from "@lossless/core/adapter";
import type { ShownCounters, StorageKinds } from "@lossless/core/adapter";
import type { MessageCounts, Row, StorageShares } from "@lossless/core/ports";
import type { Connection } from "./connection.ts";
import type { StoreContext } from "./store-context.ts";
import { readShownCounters } from "./cover.ts";

const CONVERSATION = "SELECT * FROM conversations WHERE conversation_id = ?1 AND (?2 IS NULL OR owner = ?2)";
const HIDDEN_ROWS = `
  SELECT hidden_now AS hidden, count(*) AS n FROM messages
  WHERE conversation_id = ? AND hidden_now <> 0 AND revises IS NULL GROUP BY hidden_now`;
const REVISIONS = "SELECT count(*) AS n FROM messages WHERE conversation_id = ? AND revises IS NOT NULL";

/** Conversations that do not exist, or are not the owner's, are omitted. */
export function countMessages(
  { connection }: StoreContext,
  conversationIds: readonly number[],
  owner?: string,
): MessageCounts[] {
  return connection.read(() =>
    conversationIds.flatMap((id) => {
      const conversation = connection.get<CountedRow>(CONVERSATION, id, owner ?? null);
      return conversation ? [countOne(connection, id, conversation)] : [];
    }),
  );
}

type CountedRow = ShownCounters & Pick<Row<"conversations">, "message_count">;

const countOne = (connection: Connection, conversationId: number, conversation: CountedRow): MessageCounts =>
  toCounts({
    conversationId,
    rows: conversation.message_count,
    revisions: connection.get<{ n: number }>(REVISIONS, conversationId)?.n ?? 0,
    shownMessages: readShownCounters(connection, conversationId, conversation).shownMessages,
    hidden: connection.all<{ hidden: number; n: number }>(HIDDEN_ROWS, conversationId),
  });

const PAGES = `
  SELECT s.name, s.pgsize AS bytes, coalesce(o.type, 'table') AS type FROM dbstat s LEFT JOIN sqlite_schema o ON o.name = s.name
  WHERE s.aggregate = TRUE`;
const TEXTS = "SELECT kind, sum(octet_length(content)) AS bytes FROM summaries GROUP BY kind";
const ARRIVED = "SELECT coalesce(sum(arrival_bytes), 0) AS bytes FROM conversations";
const FILES = "SELECT coalesce(sum(byte_size), 0) AS bytes FROM large_files";

/** Tables of messages; tables of the index, which contain terms; the rest is order, proof and accounts. */
const OF_MESSAGES = /^(messages|message_parts|redactions)$/;
const OF_INDEX = /_fts_|^word_blocks$|^vectors$/;

export function measureStorage({ connection }: StoreContext): StorageShares {
  return connection.read(() => {
    const handedIn = connection.get<{ bytes: number }>(ARRIVED)?.bytes ?? 0;
    const kinds: StorageKinds = { messages: 0, summaries: 0, indexes: 0, other: 0 };
    for (const { name, bytes, type } of connection.all<{ name: string; bytes: number; type: string }>(
      PAGES,
    )) {
      const isIndex = type === "index" || name.startsWith("sqlite_autoindex") || OF_INDEX.test(name);
      if (isIndex) kinds.indexes += bytes;
      else if (OF_MESSAGES.test(name)) kinds.messages += bytes;
      else kinds[name === "summaries" ? "summaries" : "other"] += bytes;
    }
    const texts = connection.all<{ kind: string; bytes: number }>(TEXTS);
    const largeFiles = connection.get<{ bytes: number }>(FILES)?.bytes ?? 0;
    return shareStorage({ handedIn, kinds, texts, largeFiles });
  });
}
