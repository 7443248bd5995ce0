/**
 * Removes whole conversations, with everything that belongs to them and nothing else. Which ones may go is decided above the store, from
 * {@link readTies}; here it is only checked that nothing has changed since.
 *
 * Invariants: one transaction, whose references are checked before it commits; no id is given out again. Files are removed after the commit,
 * so a crash leaves at most files that no message names.
 */
import { EngineError } from "@lossless/core/adapter";
import type { ConversationTies, RemovedCounts } from "@lossless/core/ports";
import type { Connection } from "./connection.ts";
import type { StoreContext } from "./store-context.ts";
import { keepHighestIds } from "./next-id.ts";

const CHOSEN = "(SELECT value FROM json_each(?1))";
const FACTS = `
  SELECT c.conversation_id, c.owner, c.session_key, c.message_count, c.summary_count, c.head_seq,
    (SELECT count(*) FROM messages m WHERE m.conversation_id = c.conversation_id AND m.forgotten_at IS NOT NULL) AS forgotten
  FROM conversations c WHERE c.conversation_id IN ${CHOSEN} ORDER BY c.conversation_id`;
/** Conversations that show messages of another one: its forks. */
const FORKS = `
  SELECT parent_id AS id, conversation_id AS other FROM conversations WHERE parent_id IN ${CHOSEN}
  UNION SELECT m.conversation_id, f.conversation_id FROM fork_items f JOIN messages m ON m.message_id IN (f.message_id, f.first_id, f.last_id)
    WHERE m.conversation_id IN ${CHOSEN} AND f.conversation_id <> m.conversation_id
  UNION SELECT s.conversation_id, f.conversation_id FROM fork_items f JOIN summaries s ON s.summary_id = f.summary_id
    WHERE s.conversation_id IN ${CHOSEN} AND f.conversation_id <> s.conversation_id
  ORDER BY 1, 2`;
/** Conversations that a session of another one is placed in, too. */
const SHARED = `
  WITH own AS (
    SELECT session_ref, conversation_id FROM placements WHERE conversation_id IN ${CHOSEN}
    UNION SELECT session_ref, conversation_id FROM messages WHERE conversation_id IN ${CHOSEN})
  SELECT DISTINCT own.conversation_id AS id, p.conversation_id AS other FROM own JOIN placements p USING (session_ref)
  WHERE p.conversation_id <> own.conversation_id ORDER BY 1, 2`;

interface FactsRow {
  conversation_id: number;
  owner: string;
  session_key: string;
  message_count: number;
  summary_count: number;
  head_seq: number;
  forgotten: number;
}

export function readTies(context: StoreContext, conversationIds: readonly number[]): ConversationTies[] {
  const { connection } = context;
  return connection.read(() => selectTies(connection, JSON.stringify(conversationIds)));
}

function selectTies(connection: Connection, chosen: string): ConversationTies[] {
  const forks = connection.all<{ id: number; other: number }>(FORKS, chosen);
  const shared = connection.all<{ id: number; other: number }>(SHARED, chosen);
  const othersOf = (pairs: readonly { id: number; other: number }[], id: number): number[] =>
    pairs.filter((pair) => pair.id === id).map((pair) => pair.other);
  return connection.all<FactsRow>(FACTS, chosen).map((row) => ({
    conversationId: row.conversation_id,
    owner: row.owner,
    sessionKey: row.session_key,
    messages: row.message_count,
    summaries: row.summary_count,
    headSeq: row.head_seq,
    forgotten: row.forgotten,
    forks: othersOf(forks, row.conversation_id),
    sharesSessionWith: othersOf(shared, row.conversation_id),
  }));
}

const FILES = `SELECT storage_path, byte_size FROM large_files WHERE conversation_id IN ${CHOSEN}`;
const SUMMARY_IDS = `SELECT summary_id FROM summaries WHERE conversation_id IN ${CHOSEN}`;
const MESSAGES = `(SELECT message_id FROM messages WHERE conversation_id IN ${CHOSEN})`;
const MESSAGE_IDS = `SELECT message_id FROM messages WHERE conversation_id IN ${CHOSEN} ORDER BY message_id`;
const SESSIONS = `(SELECT session_ref FROM placements WHERE conversation_id IN ${CHOSEN}
  UNION SELECT session_ref FROM messages WHERE conversation_id IN ${CHOSEN})`;
const OF_MESSAGES = [
  "index_pending",
  "vectors_pending",
  "message_vectors",
  "redactions",
  "sealed_values",
  "message_parts",
];
const OF_SUMMARIES = ["summary_messages", "summary_parents", "summary_refs"];
const OF_SESSIONS = ["event_ids", "turns", "sessions"];
const OF_CONVERSATIONS = [
  "imports",
  "context_items",
  "fork_items",
  "summaries",
  "large_files",
  "boundaries",
  "ledger",
  "compaction_debt",
  "cache_usage",
  "placements",
  "messages",
  "conversations",
];
/** Every table that refers to what is removed. */
export const EMPTIED_TABLES = [...OF_MESSAGES, ...OF_SUMMARIES, ...OF_SESSIONS, ...OF_CONVERSATIONS];
/** Rows are found through those that come later. */
const DELETIONS = [
  ...OF_MESSAGES.map((table) => `DELETE FROM ${table} WHERE message_id IN ${MESSAGES}`),
  ...OF_SUMMARIES.map((table) => `DELETE FROM ${table} WHERE summary_id IN (${SUMMARY_IDS})`),
  ...OF_SESSIONS.map((table) => `DELETE FROM ${table} WHERE session_ref IN ${SESSIONS}`),
  ...OF_CONVERSATIONS.map((table) => `DELETE FROM ${table} WHERE conversation_id IN ${CHOSEN}`),
];

/** Null, and nothing happens, if the conversations are not what the caller saw. */
export function removeConversations(
  context: StoreContext,
  expected: readonly ConversationTies[],
): RemovedCounts | null {
  const { connection } = context;
  const chosen = JSON.stringify(expected.map(({ conversationId }) => conversationId));
  // Checked for each deleted row they cost a look through whole tables; together, at the end, they are checked once.
  connection.exec("PRAGMA foreign_keys = OFF");
  try {
    const removed = connection.write(() => {
      if (JSON.stringify(selectTies(connection, chosen)) !== JSON.stringify(expected)) return null;
      return removeRows(context, chosen, expected);
    });
    if (removed === null) return null;
    for (const path of removed.paths) context.files.remove(path);
    return removed.counts;
  } finally {
    connection.exec("PRAGMA foreign_keys = ON");
  }
}

function removeRows(
  { connection, index }: StoreContext,
  chosen: string,
  expected: readonly ConversationTies[],
): { counts: RemovedCounts; paths: string[] } {
  keepHighestIds(connection);
  const files = connection.all<{ storage_path: string; byte_size: number }>(FILES, chosen);
  index.removeAll(
    connection.all<{ message_id: number }>(MESSAGE_IDS, chosen).map((row) => row.message_id),
    connection.all<{ summary_id: string }>(SUMMARY_IDS, chosen).map((row) => row.summary_id),
  );
  for (const sql of DELETIONS) connection.run(sql, chosen);
  checkReferences(connection);
  const sum = (of: (ties: ConversationTies) => number): number =>
    expected.reduce((all, ties) => all + of(ties), 0);
  return {
    counts: {
      conversations: expected.length,
      messages: sum(({ messages }) => messages),
      summaries: sum(({ summaries }) => summaries),
      files: files.length,
    },
    paths: files.map((file) => file.storage_path),
  };
}

function checkReferences(connection: Connection): void {
  const [broken] = connection.all<{ table: string }>("PRAGMA foreign_key_check");
  if (broken === undefined) return;
  throw new EngineError(
    "verification_failed",
    `cannot remove these conversations: rows of ${broken.table} that belong to others refer to them`,
    { step: { kind: "verify" } },
  );
}
