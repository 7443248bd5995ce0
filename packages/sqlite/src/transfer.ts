/** Reading whole conversations for an export: rows in canonical order, without the numbers of this database. */
import {
  nameFilesByContent,
  toListed,
  toMovedFile,
  toMovedMessage,
  toMovedSession,
  toMovedSummary,
} from "@lossless/core/adapter";
import type { MovedColumns } from "@lossless/core/adapter";
import type {
  ListedConversation,
  MoveChoice,
  MovedCut,
  MovedFile,
  MovedRow,
  MovedSession,
  MovedSummary,
  MovedTurn,
  Row,
} from "@lossless/core/ports";
import type { StoreContext } from "./store-context.ts";
import { readRedaction } from "./redactions.ts";

const CONVERSATIONS = `
  SELECT * FROM conversations
  WHERE (?1 IS NULL OR owner = ?1) AND (?2 IS NULL OR conversation_id IN (SELECT value FROM json_each(?2)))
  ORDER BY owner, session_key, conversation_id`;
const PLACEMENTS = `
  SELECT s.session_id, p.start_position, p.base_position FROM placements p JOIN sessions s USING (session_ref)
  WHERE p.conversation_id = ? ORDER BY s.session_id, p.start_position`;
const SESSIONS = `
  SELECT s.* FROM sessions s WHERE s.session_ref IN (
    SELECT session_ref FROM placements WHERE conversation_id IN (SELECT value FROM json_each(?1))
    UNION SELECT session_ref FROM messages WHERE conversation_id IN (SELECT value FROM json_each(?1))
    UNION SELECT session_ref FROM boundaries WHERE conversation_id IN (SELECT value FROM json_each(?1)))
  ORDER BY s.owner, s.session_id`;
const TURNS =
  "SELECT advancement_key, committed_at FROM turns WHERE session_ref = ? ORDER BY advancement_key";
const MESSAGES = `
  SELECT m.*, s.session_id, e.kind AS event_kind, (SELECT f.seq FROM messages f WHERE f.message_id = m.revises) AS revises_seq
  FROM messages m JOIN sessions s USING (session_ref)
  LEFT JOIN event_ids e ON e.session_ref = m.session_ref AND e.event_id = m.event_id
  WHERE m.conversation_id = ?1 AND m.seq > ?2 AND m.seq <= ?3 ORDER BY m.seq`;
const LEDGER = `
  SELECT seq, kind, body, at FROM ledger WHERE conversation_id = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq`;
const CUTS = `
  SELECT p.at, p.length, p.encoding, f.sha256 FROM message_parts p JOIN large_files f USING (file_id)
  WHERE p.message_id = ? ORDER BY p.ordinal`;
const FILE = "SELECT * FROM large_files WHERE conversation_id = ? AND sha256 = ?";
const FILE_CONTENT_OF = "SELECT sha256 FROM large_files WHERE file_id = ?";
const SUMMARIES = `
  SELECT * FROM summaries WHERE conversation_id = ?1 ORDER BY depth, start_pos, start_seq, summary_id LIMIT ?3 OFFSET ?2`;
const SOURCES = `
  SELECT l.ordinal, m.seq AS source FROM summary_messages l JOIN messages m USING (message_id) WHERE l.summary_id = ?1
  UNION ALL SELECT ordinal, parent_summary_id FROM summary_parents WHERE summary_id = ?1 ORDER BY 1`;
const COVER = `
  SELECT summary_id FROM context_items WHERE conversation_id = ? AND summary_id IS NOT NULL ORDER BY start_pos, seq`;

export function listMoved({ connection }: StoreContext, choice: MoveChoice): ListedConversation[] {
  const ids = choice.conversationIds === undefined ? null : JSON.stringify(choice.conversationIds);
  return connection
    .all<Row<"conversations">>(CONVERSATIONS, choice.owner ?? null, ids)
    .map((row) => toListed(row, connection.all<PlacementRecord>(PLACEMENTS, row.conversation_id)));
}

type PlacementRecord = Pick<Row<"placements">, "start_position" | "base_position"> & {
  readonly session_id: string;
};

export function readMovedSessions(
  { connection }: StoreContext,
  conversationIds: readonly number[],
): { sessions: MovedSession[]; turns: MovedTurn[] } {
  const rows = connection.all<Row<"sessions">>(SESSIONS, JSON.stringify(conversationIds));
  const sessions = rows.map(toMovedSession);
  const turns = rows.flatMap((row) =>
    connection.all<{ advancement_key: string; committed_at: number }>(TURNS, row.session_ref).map((turn) => ({
      owner: row.owner,
      sessionId: row.session_id,
      key: turn.advancement_key,
      at: turn.committed_at,
    })),
  );
  return { sessions, turns };
}

/** Messages and ledger records are numbered together; both are read by that number. */
export function readMovedRows(
  { connection }: StoreContext,
  conversationId: number,
  afterSeq: number,
  limit: number,
): MovedRow[] {
  const range = [conversationId, afterSeq, afterSeq + limit] as const;
  const messages = connection.all<MovedColumns>(MESSAGES, ...range).map((row) =>
    toMovedMessage(row, {
      cuts: connection.all<MovedCut>(CUTS, row.message_id),
      redaction: readRedaction(connection, row.message_id),
    }),
  );
  const contentOf = (fileId: string): string | null =>
    connection.get<{ sha256: string }>(FILE_CONTENT_OF, fileId)?.sha256 ?? null;
  const records = connection.all<Row<"ledger">>(LEDGER, ...range).map((row) => ({
    kind: "ledger" as const,
    seq: row.seq,
    change: row.kind,
    body: nameFilesByContent(row, contentOf),
    at: row.at,
  }));
  return [...messages, ...records].sort((a, b) => a.seq - b.seq);
}

export function readMovedFile(
  { connection, files }: StoreContext,
  conversationId: number,
  sha256: string,
): { file: MovedFile; content: Uint8Array | null } | null {
  const row = connection.get<Row<"large_files">>(FILE, conversationId, sha256);
  if (!row) return null;
  return { file: toMovedFile(row), content: files.read(row.storage_path) };
}

export function readMovedSummaries(
  { connection }: StoreContext,
  conversationId: number,
  offset: number,
  limit: number,
): MovedSummary[] {
  return connection.all<Row<"summaries">>(SUMMARIES, conversationId, offset, limit).map((row) =>
    toMovedSummary(
      row,
      connection.all<{ source: number | string }>(SOURCES, row.summary_id).map(({ source }) => source),
    ),
  );
}

export function readMovedCover({ connection }: StoreContext, conversationId: number): string[] {
  return connection.all<{ summary_id: string }>(COVER, conversationId).map((row) => row.summary_id);
}
