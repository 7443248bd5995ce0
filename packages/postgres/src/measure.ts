/** Counts: what a conversation contains and what the context leaves out, and the sizes of tables. */
import { shareStorage, toCounts } from "@lossless/core/adapter";
import type { ShownCounters, StorageKinds } from "@lossless/core/adapter";
import type { MessageCounts, Row, StorageShares } from "@lossless/core/ports";
import { countShownMessages } from "./cover.ts";
import type { StoreContext } from "./store-context.ts";

const CONVERSATIONS = `
  SELECT c.* FROM unnest($1::bigint[]) WITH ORDINALITY j (id, at) JOIN conversations c ON c.conversation_id = j.id
  WHERE $2::text IS NULL OR c.owner = $2 ORDER BY j.at`;
const HIDDEN_ROWS = `
  SELECT conversation_id, hidden_now AS hidden, count(*) AS n FROM messages
  WHERE conversation_id = ANY($1::bigint[]) AND hidden_now <> 0 AND revises IS NULL GROUP BY conversation_id, hidden_now`;
const REVISIONS = `
  SELECT conversation_id, count(*) AS n FROM messages
  WHERE conversation_id = ANY($1::bigint[]) AND revises IS NOT NULL GROUP BY conversation_id`;

type CountedRow = ShownCounters & Pick<Row<"conversations">, "conversation_id" | "message_count">;
interface Count {
  readonly conversation_id: number;
  readonly n: number;
}

/** Conversations that do not exist, or belong to another owner, are omitted. */
export function countMessages(
  { sql }: StoreContext,
  conversationIds: readonly number[],
  owner?: string,
): Promise<MessageCounts[]> {
  return sql.read(async (own) => {
    const ids = [...conversationIds];
    const [conversations, hidden, revisions] = await Promise.all([
      own.all<CountedRow>(CONVERSATIONS, ids, owner ?? null),
      own.all<Count & { readonly hidden: number }>(HIDDEN_ROWS, ids),
      own.all<Count>(REVISIONS, ids),
    ]);
    const shown = await countShownMessages(own, conversations);
    return conversations.map(({ conversation_id: conversationId, message_count: rows }) => {
      const isOwn = ({ conversation_id }: Count): boolean => conversation_id === conversationId;
      return toCounts({
        conversationId,
        rows,
        revisions: revisions.find(isOwn)?.n ?? 0,
        shownMessages: shown.get(conversationId) ?? 0,
        hidden: hidden.filter(isOwn),
      });
    });
  });
}

/** Tables by name, with their size beside that of their indexes. */
const TABLES = `
  SELECT r.relname::text AS name, sum(pg_table_size(c.oid)) AS bytes, sum(pg_indexes_size(c.oid)) AS indexes
  FROM pg_class c JOIN pg_class r ON r.oid = coalesce(pg_partition_root(c.oid), c.oid)
  WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' GROUP BY r.relname`;
const TEXTS = "SELECT kind, sum(octet_length(content)) AS bytes FROM summaries GROUP BY kind";
const ARRIVED = "SELECT coalesce(sum(arrival_bytes), 0) AS bytes FROM conversations";
const FILES = "SELECT coalesce(sum(byte_size), 0) AS bytes FROM large_files";

/** The kind of each table; all others are order, proof and accounts. Large payloads count as such, wherever they are. */
const KINDS: Readonly<Record<string, keyof StorageKinds | null>> = {
  messages: "messages",
  message_parts: "messages",
  redactions: "messages",
  summaries: "summaries",
  message_vectors: "indexes",
  blobs: null,
};
const OF_INDEX = /^index_/;

interface TableSize {
  readonly name: string;
  readonly bytes: number;
  readonly indexes: number;
}

export function measureStorage({ sql }: StoreContext): Promise<StorageShares> {
  return sql.read(async (own) => {
    const [tables, texts, arrived, files] = await Promise.all([
      own.all<TableSize>(TABLES),
      own.all<{ kind: string; bytes: number }>(TEXTS),
      own.get<{ bytes: number }>(ARRIVED),
      own.get<{ bytes: number }>(FILES),
    ]);
    const kinds: StorageKinds = { messages: 0, summaries: 0, indexes: 0, other: 0 };
    for (const { name, bytes, indexes } of tables) {
      const kind = KINDS[name] === undefined ? (OF_INDEX.test(name) ? "indexes" : "other") : KINDS[name];
      if (kind === null) continue;
      kinds[kind] += bytes;
      kinds.indexes += indexes;
    }
    return shareStorage({ handedIn: arrived?.bytes ?? 0, kinds, texts, largeFiles: files?.bytes ?? 0 });
  });
}
